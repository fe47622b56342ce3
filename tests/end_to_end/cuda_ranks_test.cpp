// `device: cuda` in several processes started by mpirun.
#include <gtest/gtest.h>

#include <set>

#include "core/support/error.h"
#include "tests/end_to_end/ranks_program.h"
#include "tests/end_to_end/small_run.h"
#include "tests/support/gpu.h"

namespace tessera::testing {
namespace {

class CudaRanks : public GpuTest {
 protected:
  std::vector<std::string> train(const std::string& runs, const std::vector<std::string>& more = {}) const {
    return joined({"train", folder_ / "small.yaml", "--runs", folder_ / runs, "device=cuda", "deterministic=true"}, more);
  }
  void write_experiment(const std::string& text) const { write_bytes(folder_ / "small.yaml", text); }
  std::string run_in(const std::string& runs) const { return folder_ / (runs + "/small/1"); }

  TemporaryFolder folder_;
};

TEST_F(CudaRanks, HaveTheBytesOfOneProcessInMicroBatches) {
  write_experiment(changed(small_experiment_of_ranks(), "    - {batch_norm: {name: bn1}}\n", ""));
  std::set<std::string> results;
  for (const std::string precision : {"f32", "tf32"}) {
    SCOPED_TRACE(precision);
    const Outcome together = run_ranks(2, train(precision, {"precision=" + precision}), {"TESSERA_COMPARE_RANKS=1"});
    ASSERT_EQ(together.exit_code, 0) << together.output;
    const Outcome alone = run_ranks(1, train(precision + "_alone", {"precision=" + precision, "micro_batch=16"}));
    ASSERT_EQ(alone.exit_code, 0) << alone.output;
    EXPECT_TRUE(result_of(run_in(precision)) == result_of(run_in(precision + "_alone")));
    expect_in(read_bytes(run_in(precision) + "/env.json"), "\"device\": \"cuda:0\"");
    results.insert(tensors_of(run_in(precision)));
  }
  EXPECT_EQ(results.size(), 2u);
}

// Rank 0 sends its choices between the all-reduces of a backward pass.
TEST_F(CudaRanks, ChoicesOfAClockAreRankZeros) {
  write_experiment(small_experiment_of_ranks());
  const Outcome timed = run_ranks(2,
                                  train("timed", {"deterministic=false", "stages[0].train=4s", "~stages[3]", "~stages[2]",
                                                  "~stages[1]", "model.layers[3].conv2d.out=32"}),
                                  {"TESSERA_LOG=debug"});
  ASSERT_EQ(timed.exit_code, 0) << timed.output;
#if TESSERA_HAS_NCCL
  const bool shared = timed.output.find("ranks share a GPU") != std::string::npos;
  EXPECT_NE(timed.output.find("ranks: sums on cuda:0 by NCCL") != std::string::npos, shared) << timed.output;
#endif
  expect_in(read_bytes(run_in("timed") + "/decisions.json"), "cuda.conv2d.forward");
}

// With batch norms, whose statistics are averaged over the ranks, and an ADMM stage, whose projections are shared out.
TEST_F(CudaRanks, KilledAndResumedEndWithTheSameBytes) {
  const std::string small = small_experiment_of_ranks();
  const std::size_t stages = small.find("stages:");
  write_experiment(small.substr(0, stages) + R"(stages:
  - {name: held, train: 10s, admm: {layers: conv2, format: tucker2, ranks: {out: 6, in: 6}, keep: always, rho: 1, update: 3s}}
  - {name: factored, factorise: {from: held}, train: 4s}
)" + small.substr(small.find("checkpoint:")));
  const Outcome straight = run_ranks(2, train("straight"));
  ASSERT_EQ(straight.exit_code, 0) << straight.output;
  std::vector<std::string> words = train("killed");
  for (const char* const place : {"step:5", "step:14"}) {
    const Outcome killed = run_ranks(2, words, {str("TESSERA_KILL_AT=", place)});
    ASSERT_EQ(killed.exit_code, 128 + 9) << place << ": " << killed.output;
    words = {"resume", run_in("killed")};
  }
  const Outcome ended = run_ranks(2, words);
  ASSERT_EQ(ended.exit_code, 0) << ended.output;
  EXPECT_TRUE(result_of(run_in("killed")) == result_of(run_in("straight")));
}

// Each rank projects different layers. Their products are large enough for a clock, but a batch takes little time.
TEST_F(CudaRanks, ShareOutProjectionsUnderAClock) {
  std::string small = small_experiment_of_ranks();
  small.replace(small.find("model:"), small.find("stages:") - small.find("model:"),
                R"(model: {name: layers, layers: [{conv2d: {out: 64, kernel: 7, stride: 14}},
  relu, {conv2d: {out: 96, kernel: 2, stride: 2, name: conv2}}, relu, {conv2d: {out: 64, kernel: 3, padding: 1, name: conv3}},
  flatten, {linear: {out: 10}}]}
optimizer: {name: sgd, lr: 0.05}
)");
  const std::size_t stages = small.find("stages:");
  write_experiment(small.substr(0, stages) + R"(stages:
  - {name: held, train: 4s, admm: {layers: "conv?", format: tucker2, ranks: {out: 6, in: 4}, keep: always, rho: 1, update: 2s}}
)" + small.substr(small.find("checkpoint:")));
  const Outcome outcome = run_ranks(2, train("r", {"deterministic=false", "data.batch=8"}), {"TESSERA_COMPARE_RANKS=1"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
  for (const char* const product : {"m96 n96 k256", "m64 n64 k864"}) {
    expect_in(read_bytes(run_in("r") + "/decisions.json"), str("cuda.matmul ", product));
  }
}

TEST_F(CudaRanks, AResumeThatTheyCannotDoIsRefusedAndNotStored) {
  write_experiment(small_experiment_of_ranks());
  const auto expect_refused = [&](int ranks, const std::string& override, const std::string& part) {
    const std::string runs = str("refused", ranks);
    ASSERT_EQ(run_ranks(ranks, train(runs, {"device=cpu", override}), {"TESSERA_KILL_AT=step:9"}).exit_code, 128 + 9);
    expect_outcome(run_ranks(ranks, {"resume", run_in(runs), "device=cuda"}), 2, part);
    expect_in(read_bytes(run_in(runs) + "/config.resolved.yaml"), "device: cpu");
  };
  expect_refused(1, "power_sgd={rank: 1}", "power_sgd of stage dense: compresses gradients on the CPU alone");
  expect_refused(2, "sync_batch_norm=true", "which several ranks cannot do on GPUs");
}

TEST_F(CudaRanks, WhatTheyCannotDoIsRefused) {
  write_experiment(small_experiment_of_ranks());
  expect_outcome(run_ranks(2, train("none", {"sync_batch_norm=true"})), 2, "which several ranks cannot do on GPUs");
  EXPECT_FALSE(std::filesystem::exists(run_in("none")));
}

}  // namespace
}  // namespace tessera::testing
