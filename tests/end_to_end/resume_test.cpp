// A run that is killed and resumed ends with the bytes of a run that was not.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <sstream>

#include "core/error.h"
#include "tests/end_to_end/program.h"

namespace tessera::testing {
namespace {

constexpr const char* kExperiment = R"(
version: 1
name: small
seed: 3
threads: {compute: 2, loader: 2}
data: {name: glyphs, count: 480, test_count: 60, batch: 32, val: 0.1, augment: [{pad_crop: 2}, {flip: horizontal}]}
model:
  name: layers
  layers:
    - {conv2d: {out: 8, kernel: 3, stride: 2, padding: 1, bias: false, name: conv1}}
    - {batch_norm: {name: bn1}}
    - relu
    - {conv2d: {out: 16, kernel: 3, stride: 2, padding: 1, name: conv2}}
    - relu
    - {dropout: {p: 0.2}}
    - global_avg_pool
    - {linear: {out: 10, name: fc}}
optimizer: {name: sgd, lr: 0.05, momentum: 0.9, weight_decay: 5.0e-4}
schedule: {name: cosine, warmup: 5s}
ema: {decay: 0.9}
stages:
  - {name: dense, train: 2e}
  - {name: factorised, factorise: {layers: conv2, format: tucker2, ranks: {out: 8, in: 4}}}
  - {name: finetuned, train: 1e, optimizer: {lr: 0.01}}
  - {name: again, factorise: {layers: conv1, format: tucker2, ranks: {out: 4, in: 1}}, train: 6s}
checkpoint: {every: 4s, keep: 2}
log_every: 3
)";

// What must be equal: every tensor of the last checkpoint, the metrics, and what the run reports.
std::string fingerprint(const std::string& run) {
  const std::string checkpoint = newest_checkpoint(run);
  std::string bytes = read_bytes(run + "/metrics.jsonl");
  for (const std::string file : {"/report.md", "/layers.csv"}) {
    const std::string content = read_bytes(run + file);
    EXPECT_FALSE(content.empty()) << file;
    bytes += content;
  }
  std::vector<std::string> parts;
  for (const auto& entry : std::filesystem::directory_iterator(checkpoint)) {
    if (entry.path().extension() == ".safetensors") parts.push_back(entry.path().string());
  }
  std::sort(parts.begin(), parts.end());
  EXPECT_GE(parts.size(), 3u) << "model, optimizer and average";
  for (const std::string& part : parts) bytes += std::filesystem::path(part).filename().string() + read_bytes(part);
  return bytes;
}

class Resume : public ::testing::Test {
 protected:
  void SetUp() override { write_bytes(folder_ / "small.yaml", kExperiment); }

  std::string train(const std::string& runs, const std::vector<std::string>& overrides = {}) {
    std::vector<std::string> arguments{"train", folder_ / "small.yaml", "--runs", folder_ / runs};
    arguments.insert(arguments.end(), overrides.begin(), overrides.end());
    const Outcome outcome = run_program(arguments);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
    return folder_ / (runs + "/small/1");
  }

  TemporaryFolder folder_;
};

TEST_F(Resume, KilledAtRandomStepsEndsWithTheSameBytes) {
  const std::string straight = fingerprint(train("straight"));

  std::mt19937 random(20261121);
  std::vector<int> steps;
  for (int step = 1; step <= 39; ++step) {
    if (step != 27) steps.push_back(step);  // 27 is the factorisation
  }
  std::shuffle(steps.begin(), steps.end(), random);
  steps.resize(5);
  std::sort(steps.begin(), steps.end());

  const std::string run = folder_ / "killed/small/1";
  std::vector<std::string> arguments{"train", folder_ / "small.yaml", "--runs", folder_ / "killed"};
  for (const int step : steps) {
    const Outcome killed = run_program(arguments, {str("TESSERA_KILL_AT=step:", step)});
    ASSERT_EQ(killed.exit_code, 128 + 9) << "step " << step << ": " << killed.output;
    arguments = {"resume", run};
  }
  const Outcome finished = run_program(arguments);
  ASSERT_EQ(finished.exit_code, 0) << finished.output;
  EXPECT_TRUE(fingerprint(run) == straight);
}

// Between a pass, its files, the checkpoint and the report that follow it there is no safe place: each is tried.
TEST_F(Resume, KilledAroundAPassReportsTheSame) {
  const std::string straight = fingerprint(train("straight"));
  const std::vector<std::string> places{"factorise:1", "save:27", "step:33", "save:40", "factorise:3", "save:45", "save:47"};
  const std::string run = folder_ / "killed/small/1";
  std::vector<std::string> arguments{"train", folder_ / "small.yaml", "--runs", folder_ / "killed"};
  for (const std::string& place : places) {
    const Outcome killed = run_program(arguments, {"TESSERA_KILL_AT=" + place});
    ASSERT_EQ(killed.exit_code, 128 + 9) << place << ": " << killed.output;
    arguments = {"resume", run};
  }
  const Outcome finished = run_program(arguments);
  ASSERT_EQ(finished.exit_code, 0) << finished.output;
  EXPECT_TRUE(fingerprint(run) == straight) << read_bytes(run + "/report.md");
  const std::string layers = read_bytes(run + "/layers.csv");
  EXPECT_NE(layers.find("\nfactorised,conv2,"), std::string::npos) << layers;
  EXPECT_NE(layers.find("\nagain,conv1,"), std::string::npos) << layers;
}

TEST_F(Resume, AnotherSeedGivesOtherBytes) {
  EXPECT_FALSE(fingerprint(train("one")) == fingerprint(train("two", {"seed=4"})));
}

TEST_F(Resume, LoaderThreadsChangeNoByte) {
  EXPECT_TRUE(fingerprint(train("none", {"threads.loader=0"})) == fingerprint(train("four", {"threads.loader=4"})));
}

TEST_F(Resume, WaitingForTheDiskChangesNoByte) {
  EXPECT_TRUE(fingerprint(train("beside", {"checkpoint.async=true"})) == fingerprint(train("waits", {"checkpoint.async=false"})));
}

// The saving thread meets the failure steps after the save was asked for; the run must not end as if all were well.
TEST_F(Resume, AFailedSaveBesideTrainingEndsTheRun) {
  const std::string run = folder_ / "run/small/1";
  RunningProgram program({"train", folder_ / "small.yaml", "--runs", folder_ / "run", "stages[0].train=200e", "checkpoint.every=1e"});
  ASSERT_TRUE(program.wait_for("dense epoch 1 "));
  std::filesystem::rename(run + "/checkpoints", run + "/gone");
  const Outcome outcome = program.finish();
  EXPECT_EQ(outcome.exit_code, 1) << outcome.output;
  EXPECT_NE(outcome.output.find("/checkpoints"), std::string::npos) << outcome.output;
  EXPECT_NE(outcome.output.find("No such file or directory"), std::string::npos) << outcome.output;
  EXPECT_NE(read_bytes(run + "/status.json").find("failed"), std::string::npos);
}

TEST_F(Resume, RefusesAChangeOfThePastAndNamesFork) {
  const std::string run = train("run");
  const Outcome outcome = run_program({"resume", run, "optimizer.lr=0.5"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_NE(outcome.output.find("tessera fork"), std::string::npos) << outcome.output;
}

TEST_F(Resume, ForkGoesOnFromAStageWithOtherSettings) {
  const std::string run = train("run");
  const Outcome outcome = run_program({"fork", run, "--at", "dense", "stages[2].optimizer.lr=0.02", "--runs", folder_ / "forks"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
  EXPECT_FALSE(fingerprint(folder_ / "forks/small/1") == fingerprint(run));
}

}  // namespace
}  // namespace tessera::testing
