// validate --smoke: every stage is really tried, failures name their stage, and nothing is left over.
#include <gtest/gtest.h>
#include <signal.h>

#include "core/config/value.h"
#include "core/support/error.h"
#include "tests/end_to_end/program.h"
#include "tests/end_to_end/tiny_experiment.h"

namespace tessera::testing {
namespace {

namespace fs = std::filesystem;

constexpr const char* kBlocks = R"(
deterministic: true
data: {name: glyphs, count: 100, test_count: 20, batch: 10, val: 0.1}
optimizer: {name: sgd, lr: 0.05, momentum: 0.9}
stages:
  - {name: dense, train: 500e}
  - {name: tucker, factorise: {keep: always, layers: conv2, ranks: {out: 4, in: 4}}}
  - {name: finetune, train: 1s, ema: {decay: 0.5}}
report: {latency: {batch: [1], repeats: 1000}}
)";
const std::string kExperiment = tiny_experiment(kBlocks, {.batch_norm = true});

class Smoke : public ::testing::Test {
 protected:
  void SetUp() override {
    write_bytes(file_, kExperiment);
    fs::create_directory(temporary_);
  }
  void TearDown() override {
    EXPECT_TRUE(fs::is_empty(temporary_)) << "the temporary folder was left behind";
    EXPECT_FALSE(fs::exists(folder_ / "runs")) << "a run folder was made";
  }

  std::vector<std::string> environment() const { return {"TMPDIR=" + temporary_, "TESSERA_RUNS=" + (folder_ / "runs")}; }

  Outcome smoke(const std::vector<std::string>& more = {}) const {
    return run_program(joined({"validate", file_, "--smoke"}, more), environment());
  }
  void expect(const std::vector<std::string>& more, int code, const std::string& part) const {
    expect_outcome(smoke(more), code, part);
  }

  TemporaryFolder folder_;
  std::string file_ = folder_ / "tiny.yaml";
  std::string temporary_ = folder_ / "tmp";
};

TEST_F(Smoke, GoesThroughEveryStageAndTheTable) {
  const Outcome outcome = smoke();
  ASSERT_EQ(outcome.exit_code, 0) << outcome.output;
  for (const std::string& part :
       {std::string("smoke dense: 2 of 4500 steps, loss "), std::string("smoke tucker: 1 of 1 matched layers factored"),
        std::string("smoke finetune: 1 of 1 steps, loss "), std::string("smoke table: 3 rows; "),
        file_ + ": ok; the temporary folder is removed\nnext: tessera train " + file_ + "\n"}) {
    expect_in(outcome.output, part);
  }
}

TEST_F(Smoke, ReloadsTheTrainersTensorsToo) {
  const Value answer = parse_json(smoke({"--json"}).output, "output").at("smoke");
  const auto& stages = answer.at("stages").as_list();
  ASSERT_EQ(stages.size(), 3u);
  // 8 parameters and 2 statistics (10 and 2 once factored). Training adds a momentum each, the loss, and averages with ema.
  EXPECT_EQ(stages[0].at("tensors").as_int(), 8 + 2 + 8 + 1) << to_json(stages[0]);
  EXPECT_EQ(stages[1].at("tensors").as_int(), 12) << to_json(stages[1]);
  EXPECT_EQ(stages[2].at("tensors").as_int(), 12 + 10 + 1 + 12) << to_json(stages[2]);
}

TEST_F(Smoke, TheFirstFailureNamesItsStage) {
  expect({"optimizer.lr=1e30"}, 1, "tessera: smoke: stage dense, step 2: training: ");
  const Outcome outcome = smoke({"stages[2].train=5s", "stages[2].optimizer.lr=1e30"});
  expect_outcome(outcome, 1, "smoke tucker: 1 of 1");
  expect_in(outcome.output, "tessera: smoke: stage finetune, step 2: training: ");
}

TEST_F(Smoke, BadInputIsFoundBeforeAnyStage) {
  expect({"optimizer.lrr=1"}, 2, "optimizer.lrr: unknown key");
  expect({"data={name: mnist, root: /nosuch, batch: 10}"}, 2, "/nosuch");
  const Outcome outcome = smoke({"--json", "stages[1].factorise.layers=conv9"});
  EXPECT_EQ(outcome.exit_code, 2);
  const Value answer = parse_json(outcome.output, "output");
  EXPECT_FALSE(answer.at("ok").as_bool());
  EXPECT_EQ(answer.at("errors").as_list().size(), 1u);
  EXPECT_TRUE(answer.at("smoke").is_null());
}

TEST_F(Smoke, JsonSaysWhatWasDone) {
  const Outcome outcome = smoke({"--json", "stages[2].optimizer.lr=1e30", "stages[2].train=2s"});
  EXPECT_EQ(outcome.exit_code, 1) << outcome.output;
  const Value answer = parse_json(outcome.output, "output");  // nothing but JSON
  EXPECT_FALSE(answer.at("ok").as_bool());
  const Value& smoke = answer.at("smoke");
  EXPECT_FALSE(smoke.at("ok").as_bool());
  EXPECT_FALSE(smoke.at("stopped").as_bool());
  EXPECT_TRUE(smoke.at("table").is_null());
  EXPECT_EQ(smoke.at("failure").at("where").as_string(), "stage finetune, step 2");
  const auto& stages = smoke.at("stages").as_list();
  ASSERT_EQ(stages.size(), 2u);
  EXPECT_EQ(stages[0].at("name").as_string(), "dense");
  EXPECT_EQ(stages[0].at("steps").as_int(), 2);
  EXPECT_EQ(stages[0].at("stage_steps").as_int(), 4500);
  EXPECT_TRUE(stages[0].at("passes").is_null());
  EXPECT_GT(stages[0].at("checkpoint_bytes").as_int(), 0);
  EXPECT_GE(stages[0].at("seconds").as_double(), 0);
  EXPECT_TRUE(stages[1].at("passes").is_string());
  EXPECT_TRUE(stages[1].at("loss").is_null());
}

TEST_F(Smoke, NowhereToWriteIsAFailure) {
  expect_outcome(run_program({"validate", file_, "--smoke"}, {"TMPDIR=/nosuch"}), 1,
                 "smoke: temporary folder: no folder for temporary files");
}

TEST_F(Smoke, ASignalStopsItAndTidiesUp) {
  std::string text(kExperiment);
  std::string stages;
  for (int i = 0; i < 300; ++i) stages += str("  - {name: s", i, ", train: 5s}\n");
  const std::size_t begin = text.find("  - {name: dense");
  write_bytes(file_, text.replace(begin, text.find("report:") - begin, stages));
  RunningProgram program({"validate", file_, "--smoke"}, environment());
  ASSERT_TRUE(program.wait_for("smoke s1: ")) << program.finish().output;
  program.send(SIGTERM);
  expect_outcome(program.finish(), 3, "stopped; the temporary folder is removed");
}

}  // namespace
}  // namespace tessera::testing
