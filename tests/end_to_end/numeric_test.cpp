// A run whose numbers overflow names the op that caused it, and leaves its last good checkpoint to resume from.
#include <gtest/gtest.h>

#include <set>

#include "tests/end_to_end/program.h"
#include "tests/end_to_end/tiny_experiment.h"

namespace tessera::testing {
namespace {

// 6 good steps. Then step 7 has a rate that makes weights so large that step 8's products overflow. Found at step 9.
constexpr const char* kBlocks = R"(
data: {name: glyphs, count: 120, test_count: 20, batch: 32, val: 0.1}
optimizer: {name: sgd, lr: 0.05}
stages:
  - {name: calm, train: 6s}
  - {name: wild, train: 9s, optimizer: {lr: 1.0e+30}}
checkpoint: {every: 2s, keep: 3, best: false}
log_every: 9
)";

class Numeric : public ::testing::Test {
 protected:
  void SetUp() override { write_bytes(folder_ / "tiny.yaml", tiny_experiment(kBlocks)); }

  Outcome train(const std::vector<std::string>& overrides = {}) {
    return run_program(joined({"train", folder_ / "tiny.yaml", "--runs", folder_ / "runs"}, overrides));
  }

  TemporaryFolder folder_;
  std::string run_ = folder_ / "runs/tiny/1";
};

TEST_F(Numeric, NamesTheOpAndExitsWithOne) {
  const Outcome outcome = train();
  EXPECT_EQ(outcome.exit_code, 1);
  expect_in(outcome.output, "; replaying steps 7 to 8 with every op checked\n");
  expect_in(outcome.output,
            "tessera: training: stage wild, step 8 (lr 1e+30): conv2d (conv2) forward made the first Inf: output f32 [32, 6, 6, "
            "8] at ");
  expect_in(outcome.output, "; its inputs were finite, up to ");
  expect_in(outcome.output, "; step 6 was good: tessera fork " + run_ + " --at 6 optimizer.lr=1e+29\n");
  expect_in(read_bytes(run_ + "/status.json"), "\"state\": \"failed\"");
}

TEST_F(Numeric, TheReplayLeavesTheRunFolderAlone) {
  ASSERT_EQ(train().exit_code, 1);
  ASSERT_EQ(train({"stages[1].train=1s", "stages[1].optimizer.lr=0.05"}).exit_code, 0);
  const std::string good = read_bytes(folder_ / "runs/tiny/2/metrics.jsonl");
  const std::string failed = read_bytes(run_ + "/metrics.jsonl");
  EXPECT_TRUE(!failed.empty() && good.starts_with(failed)) << failed;  // the lines before the higher rate
  std::set<std::string> checkpoints;
  for (const auto& entry : std::filesystem::directory_iterator(run_ + "/checkpoints")) {
    checkpoints.insert(entry.path().filename().string());
  }
  EXPECT_EQ(checkpoints, (std::set<std::string>{"latest", "step-00000002", "step-00000004", "step-00000006"}));
}

TEST_F(Numeric, TheLastGoodCheckpointGoesOnWithALowerRate) {
  ASSERT_EQ(train().exit_code, 1);
  const Outcome outcome = run_program({"fork", run_, "--at", "6", "optimizer.lr=0.01", "--runs", folder_ / "forks"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
}

TEST_F(Numeric, ARunWithoutACheckpointIsReplayedFromTheSeed) {
  const Outcome outcome = train({"stages[0].optimizer.lr=1e30", "checkpoint.every=6s"});
  EXPECT_EQ(outcome.exit_code, 1);
  expect_in(outcome.output, "stage calm, step 2 (lr 1e+30): conv2d (conv2) forward made the first Inf");
  expect_in(outcome.output, "; there is no checkpoint yet: train again with, say, optimizer.lr=1e+29");
}

}  // namespace
}  // namespace tessera::testing
