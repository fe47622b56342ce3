// `device: cuda` in several processes that mpirun starts.
#include <gtest/gtest.h>

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
  // Ranks have a GPU each where there are enough, else they share them.
  static Outcome run(int ranks, const std::vector<std::string>& words, const std::vector<std::string>& environment = {}) {
    std::string gpus = "CUDA_VISIBLE_DEVICES=0";
    for (int i = 1; i < cuda_device_count(); ++i) gpus += str(',', i);
    return run_ranks(ranks, words, joined({gpus}, environment));
  }
  void write_experiment(const std::string& text) const { write_bytes(folder_ / "small.yaml", text); }
  std::string run_in(const std::string& runs) const { return folder_ / (runs + "/small/1"); }

  TemporaryFolder folder_;
};

TEST_F(CudaRanks, HaveTheBytesOfOneProcessInMicroBatches) {
  write_experiment(changed(small_experiment_of_ranks(), "    - {batch_norm: {name: bn1}}\n", ""));
  const Outcome together = run(2, train("together"));
  ASSERT_EQ(together.exit_code, 0) << together.output;
  const Outcome alone = run(1, train("alone", {"micro_batch=16"}));
  ASSERT_EQ(alone.exit_code, 0) << alone.output;
  EXPECT_TRUE(result_of(run_in("together")) == result_of(run_in("alone")));
  expect_in(read_bytes(run_in("together") + "/env.json"), "\"device\": \"cuda:0\"");
}

// With batch norms, whose statistics are the ranks' means, and a stage of ADMM, whose projections are shared out.
TEST_F(CudaRanks, KilledAndResumedEndWithTheSameBytes) {
  const std::string small = small_experiment_of_ranks();
  const std::size_t stages = small.find("stages:");
  write_experiment(small.substr(0, stages) + R"(stages:
  - {name: held, train: 10s, admm: {layers: conv2, format: tucker2, ranks: {out: 6, in: 6}, keep: always, rho: 1, update: 3s}}
  - {name: factored, factorise: {from: held}, train: 4s}
)" + small.substr(small.find("checkpoint:")));
  const Outcome straight = run(2, train("straight"));
  ASSERT_EQ(straight.exit_code, 0) << straight.output;
  std::vector<std::string> words = train("killed");
  for (const char* const place : {"step:5", "step:14"}) {
    const Outcome killed = run(2, words, {str("TESSERA_KILL_AT=", place)});
    ASSERT_EQ(killed.exit_code, 128 + 9) << place << ": " << killed.output;
    words = {"resume", run_in("killed")};
  }
  const Outcome ended = run(2, words);
  ASSERT_EQ(ended.exit_code, 0) << ended.output;
  EXPECT_TRUE(result_of(run_in("killed")) == result_of(run_in("straight")));
}

TEST_F(CudaRanks, WhatTheyCannotDoIsRefused) {
  write_experiment(small_experiment_of_ranks());
  expect_outcome(run(2, train("none", {"sync_batch_norm=true"})), 2, "which several ranks cannot do on GPUs");
  EXPECT_FALSE(std::filesystem::exists(run_in("none")));
}

}  // namespace
}  // namespace tessera::testing
