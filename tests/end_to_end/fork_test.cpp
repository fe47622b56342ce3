// Which changes fork and resume accept, which they refuse, and what a fork inherits.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/end_to_end/program.h"
#include "tests/end_to_end/tiny_experiment.h"
#include "train/checkpoint/run_lock.h"
#include "train/config/yaml.h"

namespace tessera::testing {
namespace {

namespace fs = std::filesystem;

// 6 steps, a factorisation (step 7), 3 steps. Stages end at steps 6, 7 and 10; checkpoints inside stages are at 4 and 9.
constexpr const char* kBlocks = R"(
data: {name: glyphs, count: 120, test_count: 20, batch: 32, val: 0.1}
optimizer: {name: sgd, lr: 0.05, momentum: 0.9}
stages:
  - {name: dense, train: 6s}
  - {name: factorised, factorise: {keep: always, layers: conv2, format: tucker2, ranks: {out: 4, in: 2}}}
  - {name: finetuned, train: 3s, optimizer: {lr: 0.01}}
checkpoint: {every: 2s, keep: 3, best: false}
log_every: 2
)";

class Fork : public ::testing::Test {
 protected:
  void SetUp() override {
    write_bytes(folder_ / "tiny.yaml", tiny_experiment(kBlocks));
    const Outcome outcome = run_program({"train", folder_ / "tiny.yaml", "--runs", folder_ / "runs"});
    ASSERT_EQ(outcome.exit_code, 0) << outcome.output;
    run_ = folder_ / "runs/tiny/1";
  }

  Outcome fork(const std::string& at, std::vector<std::string> overrides) {
    overrides.insert(overrides.begin(), {"fork", run_, "--at", at, "--runs", folder_ / "forks"});
    return run_program(overrides);
  }

  void expect_refused(const std::string& at, const std::vector<std::string>& overrides, const std::string& key,
                      const std::string& why) {
    const Outcome outcome = fork(at, overrides);
    expect_outcome(outcome, 2, key);
    expect_in(outcome.output, why);
    EXPECT_FALSE(fs::exists(folder_ / "forks")) << "a refused fork made a folder";
  }

  static double learning_rate(const std::string& run, std::size_t stage) {
    return load_yaml(run + "/config.resolved.yaml").at("stages").as_list().at(stage).at("optimizer").at("lr").as_double();
  }

  TemporaryFolder folder_;
  std::string run_;
};

TEST_F(Fork, FoldersThatAreNoCheckpointsAreNotForkedFrom) {
  const std::string checkpoints = run_ + "/checkpoints/";
  fs::copy(checkpoints + "step-00000006", checkpoints + "step-00000006-good", fs::copy_options::recursive);
  fs::rename(checkpoints + "step-00000009", checkpoints + "step-9-mine");
  const Outcome outcome = fork("dense", {"optimizer.lr=0.02"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.output;
  EXPECT_TRUE(fs::exists(folder_ / "forks/tiny/1/checkpoints/step-00000006"));
  EXPECT_FALSE(fs::exists(folder_ / "forks/tiny/1/checkpoints/step-00000006-good"));
  EXPECT_EQ(fork("9", {"optimizer.lr=0.02"}).exit_code, 2);
}

// A fork does not inherit the choices that the parent's clock made for later stages. It times these layers itself.
TEST_F(Fork, TakesTheChoicesOfItsStartAndNoLaterOnes) {
  write_bytes(run_ + "/decisions.json", R"({"version": 1, "decisions": {"keep.layer of a later stage": "faster"}})");
  const Outcome outcome = fork("dense", {"optimizer.lr=0.02"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.output;
  const std::string forked = folder_ / "forks/tiny/1";
  EXPECT_EQ(read_bytes(forked + "/decisions.json").find("keep.layer of a later stage"), std::string::npos);
  EXPECT_EQ(outcome.output.find("decisions"), std::string::npos) << outcome.output;  // no message about a missing file
}

// The file looks as if an older version, without this key, had written it.
TEST_F(Fork, AKeyThatTheRunDoesNotHaveTakesItsDefault) {
  std::string resolved = read_bytes(run_ + "/config.resolved.yaml");
  const std::size_t at = resolved.find("deterministic: false\n");
  ASSERT_NE(at, std::string::npos) << resolved;
  write_bytes(run_ + "/config.resolved.yaml", resolved.erase(at, std::string_view("deterministic: false\n").size()));
  const Outcome resumed = run_program({"resume", run_, "checkpoint.keep=4"});
  EXPECT_EQ(resumed.exit_code, 0) << resumed.output;
  const Outcome forked = fork("dense", {"optimizer.lr=0.02"});
  EXPECT_EQ(forked.exit_code, 0) << forked.output;
}

TEST_F(Fork, ATrainingKeyOfTheTopReachesTheStagesThatAreOpen) {
  const Outcome outcome = fork("dense", {"optimizer.lr=0.5"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.output;
  const std::string forked = folder_ / "forks/tiny/1";
  EXPECT_EQ(learning_rate(forked, 0), 0.05);
  EXPECT_EQ(learning_rate(forked, 2), 0.5);
  const std::string metrics = read_bytes(forked + "/metrics.jsonl");
  EXPECT_NE(metrics.find("\"stage\":\"finetuned\",\"step\":8,"), std::string::npos) << metrics;
  EXPECT_NE(metrics, read_bytes(run_ + "/metrics.jsonl"));
}

TEST_F(Fork, AnAddedBlockStaysOutOfThePast) {
  const Outcome outcome = fork("factorised", {"ema={decay: 0.5}"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.output;
  EXPECT_NE(read_bytes(folder_ / "forks/tiny/1/config.resolved.yaml").find("decay: 0.5"), std::string::npos);
}

TEST_F(Fork, TheCommandThatResumeRecommendsWorks) {
  const Outcome refused = run_program({"resume", run_, "optimizer.lr=0.5"});
  EXPECT_EQ(refused.exit_code, 2);
  const std::string command = "tessera fork " + run_ + " --at ";
  const std::size_t found = refused.output.find(command);
  ASSERT_NE(found, std::string::npos) << refused.output;
  const std::size_t begin = found + command.size();
  const std::string at = refused.output.substr(begin, refused.output.find(' ', begin) - begin);
  const Outcome outcome = fork(at, {"optimizer.lr=0.5"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
  EXPECT_EQ(learning_rate(folder_ / "forks/tiny/1", 2), 0.5);
}

TEST_F(Fork, ResumeNamesANewRunWhereNoForkHelps) {
  const Outcome outcome = run_program({"resume", run_, "seed=4"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_EQ(outcome.output.find("tessera fork"), std::string::npos) << outcome.output;
  EXPECT_NE(outcome.output.find("tessera train"), std::string::npos) << outcome.output;
}

TEST_F(Fork, KeepsTheEndsOfEarlierStagesThroughLaterSaves) {
  const Outcome outcome = fork("factorised", {"stages[2].train=12s", "checkpoint.keep=1"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.output;
  const std::string forked = folder_ / "forks/tiny/1";
  for (const char* name : {"step-00000006", "step-00000007", "step-00000019"}) {
    EXPECT_TRUE(fs::exists(forked + "/checkpoints/" + name)) << name;
  }
  EXPECT_EQ(read_bytes(forked + "/layers.csv"), read_bytes(run_ + "/layers.csv"));
}

TEST_F(Fork, RefusesWhatTheCheckpointCannotGoOnWith) {
  expect_refused("factorised", {"~stages[0]"}, "stages[0]", "order of the stages");
  expect_refused("dense", {"stages[0].train=4s"}, "stages[0].train", "over at the fork");
  expect_refused("dense", {"seed=4"}, "seed", "another seed");
  expect_refused("dense", {"data.count=160"}, "data.count", "other data");
  expect_refused("dense", {"model.layers[0].conv2d.out=5"}, "model.layers", "network comes from the checkpoint");
  expect_refused("finetuned", {"optimizer.lr=0.5"}, "no stage is left", "earlier");
  expect_refused("nosuch", {}, "no checkpoint 'nosuch'", "6=dense");
}

TEST_F(Fork, InsideAStageRefusesWhatItsStateDependsOn) {
  const std::string why = "middle of";
  expect_refused("9", {"data.batch=16"}, "data.batch", why);
  expect_refused("9", {"stages[2].optimizer={name: adamw, lr: 0.001}"}, "stages[2].optimizer", why);
  expect_refused("9", {"optimizer.momentum=0"}, "stages[2].optimizer.momentum", why);
  expect_refused("9", {"ema={decay: 0.5}"}, "stages[2].ema", why);
  expect_refused("9", {"stages[2].train=5s"}, "stages[2].train", why);
  const Outcome outcome = fork("9", {"optimizer.lr=0.5"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
}

TEST_F(Fork, ADamagedCheckpointThatIsNotNeededStopsNothing) {
  write_bytes(run_ + "/checkpoints/step-00000009/MANIFEST.json", "{");
  write_bytes(run_ + "/checkpoints/step-00000010/model.safetensors", "");
  const Outcome outcome = fork("dense", {"optimizer.lr=0.5"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
}

TEST_F(Fork, ADamagedStartIsRefusedBeforeAnyFolderIsMade) {
  write_bytes(run_ + "/checkpoints/step-00000006/model.safetensors", "");
  expect_outcome(fork("dense", {}), 1, "'dense' is damaged");
  EXPECT_FALSE(fs::exists(folder_ / "forks"));
}

TEST_F(Fork, ResumeOfARunThatIsHeldChangesNothing) {
  const std::string before = read_bytes(run_ + "/config.resolved.yaml");
  const RunLock lock(run_);
  expect_outcome(run_program({"resume", run_, "checkpoint.keep=7"}), 1, "is being written by");
  EXPECT_EQ(read_bytes(run_ + "/config.resolved.yaml"), before);
}

TEST_F(Fork, AFolderThatIsNoRunIsAMistakeOfTheUser) {
  EXPECT_EQ(run_program({"resume", folder_ / "nosuch"}).exit_code, 2);
  fs::remove(run_ + "/config.resolved.yaml");
  expect_outcome(run_program({"resume", run_}), 2, "not a run folder");
}

}  // namespace
}  // namespace tessera::testing
