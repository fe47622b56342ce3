// Sparse training with moving masks in whole runs: the sparsity holds throughout, and killed runs end with the same bytes.
#include <gtest/gtest.h>

#include <csignal>

#include "core/config/value.h"
#include "core/io/safetensors.h"
#include "core/support/error.h"
#include "core/support/text.h"
#include "tests/end_to_end/tiny_runs.h"

namespace tessera::testing {
namespace {

// 13 steps an epoch. conv2 has 576 weights.
constexpr const char* kRest = R"(
deterministic: true
data: {name: glyphs, count: 480, test_count: 60, batch: 32, val: 0.1}
optimizer: {name: sgd, lr: 0.05, momentum: 0.9, weight_decay: 1.0e-3}
ema: {decay: 0.9}
clip_norm: 1
micro_batch: 16
checkpoint: {every: 3s, keep: 2, async: false}
log_every: 2
stages:
  - {name: sparse, train: 2e, rigl: {sparsity: 0.8, scope: layer, every: 4s}}
  - {name: tuned, train: 1e}
)";

class RiglRuns : public TinyRuns {
 protected:
  RiglRuns() : TinyRuns(kRest) {}
};

TEST_F(RiglRuns, KilledAndResumedTheyEndWithTheSameBytes) {
  expect_survives({"step:1", "step:7", "step:9", "save:12", "step:17", "step:22", "step:30"});
  const std::vector<Value> rows = rows_of(run_in("straight"), "rigl");
  ASSERT_EQ(rows.size(), 4u) << "after 4, 8, 12 and 16 steps; 75 % of 26 are 20";
  for (const Value& row : rows) EXPECT_GT(row.at("moved").as_int(), 0);
  EXPECT_EQ(kept(run_in("straight")), 115) << "behind the stage, too";
}

TEST_F(RiglRuns, EachOptionLeavesItsOwnWeights) {
  std::vector<std::string> seen;
  for (const char* change : {"threads.loader=0", "stages[0].rigl.fraction=0", "stages[0].rigl.every=6s", "stages[0].rigl.end=50%",
                             "seed=2", "stages[0].rigl.layers='*'", "stages[0].rigl.scope=erk"}) {
    expect_done(run_program(train(change, {change})));
    EXPECT_EQ(kept(run_in(change)), 115) << change;
    seen.push_back(tensors_of(run_in(change)));
    if (std::string(change).ends_with("erk")) break;  // ERK over one layer equals scope: layer
    for (std::size_t i = 0; i + 1 < seen.size(); ++i) EXPECT_FALSE(seen[i] == seen.back()) << change;
  }
}

TEST_F(RiglRuns, MovesTheMasksThatAPruningLeft) {
  const std::vector<std::string> changes{
      "stages=[{name: a, train: 1e, prune: {sparsity: {target: 0.9, every: 2s}}}, "
      "{name: b, train: 1e, rigl: {sparsity: 0.5, every: 2s}}]"};
  expect_done(run_program(train("runs", changes)));
  EXPECT_LE(kept(run_in("runs")), 58) << "the pruning's count";
  EXPECT_FALSE(rows_of(run_in("runs"), "rigl").empty());
}

TEST_F(RiglRuns, AForkMayMoveMasksOtherwise) {
  const Outcome killed = run_program(train("runs"), {"TESSERA_KILL_AT=step:8"});
  ASSERT_EQ(killed.exit_code, 128 + SIGKILL) << killed.output;
  const std::vector<std::string> fork{"fork", run_in("runs"), "--at", "6", "--runs", folder_ / "forks"};
  expect_done(run_program(joined(fork, {"stages[0].rigl.fraction=0.6"})));
  for (const char* fixed : {"stages[0].rigl.sparsity=0.5", "~stages[0].rigl"}) {
    expect_outcome(run_program(joined(fork, {fixed})), 2, "the fork is in the middle of this stage, whose saved state needs it");
  }
}

TEST_F(RiglRuns, BlocksThatCannotBeAreNamedBeforeTraining) {
  const auto refused = [&](const std::string& change, const std::string& part) {
    expect_outcome(run_program(train("none", {change})), 2, part);
    EXPECT_FALSE(std::filesystem::exists(folder_ / "none")) << change;
  };
  refused("stages[0].rigl.end=27s", "stages[0].rigl.end: is step 27 of a stage of 26");
  refused("stages[0].rigl.every=20s", "stages[0].rigl.every: is 20 steps; the moves end at step 20");
  refused("stages[0].rigl.layers=conv7", "stages[0].rigl.layers: ");
  refused("~stages[0].train", "stages[0].rigl: needs train");
  refused("stages[0].prune={sparsity: {target: 0.9}}", "stages[0].rigl: has no place beside prune");
}

}  // namespace
}  // namespace tessera::testing
