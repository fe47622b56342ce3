// Pruning in whole runs: the target is met, masks hold through later stages, killed runs end with the same bytes, and forks
// prune further.
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <set>

#include "core/config/value.h"
#include "core/io/safetensors.h"
#include "core/io/vfs.h"
#include "core/support/error.h"
#include "core/support/text.h"
#include "tests/end_to_end/tiny_runs.h"
#include "train/checkpoint/store.h"
#include "train/run/saved_model.h"

namespace tessera::testing {
namespace {

// 13 steps an epoch; conv2 has 576 weights.
constexpr const char* kRest = R"(
deterministic: true
data: {name: glyphs, count: 480, test_count: 60, batch: 32, val: 0.1}
optimizer: {name: sgd, lr: 0.05, momentum: 0.9, weight_decay: 1.0e-3}
ema: {decay: 0.9}
clip_norm: 1
checkpoint: {every: 3s, keep: 2, async: false}
log_every: 2
stages:
  - {name: dense, train: 1e}
  - {name: pruned, train: 2e, prune: {sparsity: {target: 0.8, begin: 2s, end: 20s, every: 4s}}}
  - {name: tuned, train: 1e}
)";

class PruneRuns : public TinyRuns {
 protected:
  PruneRuns() : TinyRuns(kRest) {}
  // The places of the kills include the ramp of the pruning stage.
  void expect_to_survive(const std::vector<std::string>& changes) const {
    expect_survives({"step:7", "step:17", "save:22", "step:24", "step:33", "save:39", "step:45"}, changes);
  }
  static std::vector<Value> prunings(const std::string& run) { return rows_of(run, "prune"); }
  static Tensor weight_of(const std::string& run) { return tensors(run).at("conv2.weight"); }
};

TEST_F(PruneRuns, MeetTheTargetAndKeepTheMaskBehindTheStage) {
  const Outcome outcome = run_program(train("runs"));
  expect_done(outcome);
  expect_in(outcome.output, "sparsity 0.8");
  const std::vector<Value> rows = prunings(run_in("runs"));
  ASSERT_EQ(rows.size(), 6u) << "after 2, 6, 10, 14, 18 and 20 steps";
  EXPECT_EQ(rows.front().at("step").as_int(), 2);
  EXPECT_EQ(rows.back().at("asked").as_double(), 0.8);
  EXPECT_NEAR(rows.back().at("sparsity").as_double(), 1 - 115.0 / 576, 1e-9);
  const std::string report = read_bytes(run_in("runs") + "/report.md");
  for (const char* const part : {"| best val accuracy | sparsity |", "| dense | 13 | 13 |"}) expect_in(report, part);
  // conv1, conv2 and fc have 72, 576 and 80 weights.
  expect_in(report, str(" | ", formatted("%.2f", 100.0 * (576 - 115) / (72 + 576 + 80)), " % |"));
  EXPECT_EQ(kept(run_in("runs")), 115) << "momentum, weight decay and the averages of the stage behind move no zero";
}

// Of 26 steps the shares are 2.6, 20.8 and 3.9, rounded to 3, 21 and 4.
TEST_F(PruneRuns, PruneAtSharesOfTheirStage) {
  expect_done(run_program(train("runs", {"stages[1].prune.sparsity={target: 0.8, begin: 10%, end: 80%, every: 15%}"})));
  std::vector<std::int64_t> steps;
  for (const Value& row : prunings(run_in("runs"))) steps.push_back(row.at("step").as_int());
  EXPECT_EQ(steps, (std::vector<std::int64_t>{3, 7, 11, 15, 19, 21}));
  EXPECT_EQ(kept(run_in("runs")), 115);
}

TEST_F(PruneRuns, KilledAndResumedTheyEndWithTheSameBytes) { expect_to_survive({}); }

TEST_F(PruneRuns, KilledAndResumedTheyEndWithTheSameTiles) {
  expect_to_survive({"stages[1].prune.pattern=tile", "stages[1].prune.group=4"});
  ASSERT_EQ(prunings(run_in("killed")).size(), 6u);
  EXPECT_LE(kept(run_in("killed")), 115);
  EXPECT_GT(kept(run_in("killed")), 115 - 4) << "to one position of a tile";
  const Tensor weight = weight_of(run_in("killed"));
  std::set<std::vector<bool>> positions;  // positions that the outputs keep
  for (std::int64_t output = 0; output < 8; ++output) {
    std::vector<bool> there;
    for (const float value : weight.slice(0, output, output + 1).contiguous().to_vector<float>()) there.push_back(value != 0);
    if (std::ranges::find(there, true) != there.end()) positions.insert(there);
  }
  EXPECT_LE(positions.size(), 2u) << "of two tiles";
}

TEST_F(PruneRuns, KilledAndResumedTheyEndWithTheSameBytesAtTargetsOfTheirOwn) {
  expect_to_survive({"stages[1].prune.layers='*'", "stages[1].prune.sparsity.targets=[{layers: conv*, target: 0.9}]"});
  EXPECT_EQ(kept(run_in("killed")), 58);
}

// The network has a batch norm, whose statistics are those of batches, and two threads load the batches.
TEST_F(PruneRuns, KilledAndResumedTheyEndWithTheSameBytesByGradients) {
  write_bytes(folder_ / "tiny.yaml", tiny_experiment(kRest, {.threads = "{compute: 1, loader: 2}", .batch_norm = true}));
  expect_to_survive({"stages[1].prune.score=taylor", "stages[1].prune.score_batches=3"});
  EXPECT_EQ(kept(run_in("killed")), 115);
  expect_done(
      run_program(train("inline", {"stages[1].prune.score=taylor", "stages[1].prune.score_batches=3", "threads.loader=0"})));
  EXPECT_TRUE(tensors_of(run_in("inline")) == tensors_of(run_in("straight")));
}

// The mask freezes after step 33 of the run, between two places where the run is killed.
TEST_F(PruneRuns, KilledAndResumedTheyEndWithTheSameBytesBySrSte) {
  const std::vector<std::string> changes{"stages[1].prune={pattern: n_m, sr_ste: {lambda: 0.01}}"};
  expect_to_survive(changes);
  const std::vector<Value> rows = prunings(run_in("killed"));
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].at("step").as_int(), 20);
  EXPECT_EQ(kept(run_in("killed")), 288);
  expect_done(run_program(train("one_shot", {"stages[1].prune={pattern: n_m}"})));
  EXPECT_FALSE(tensors_of(run_in("one_shot")) == tensors_of(run_in("killed")));
}

// Training keeps updating all weights. The evaluated weights have the masks that training's forward applies.
TEST_F(PruneRuns, CheckpointsBeforeTheFreezeAreEvaluatedMasked) {
  for (const char* average : {"ema.decay=0.9", "~ema"}) {
    const std::vector<std::string> changes{"stages[1].prune={pattern: n_m, sr_ste: {}}", average};
    ASSERT_EQ(run_program(train(average, changes), {"TESSERA_KILL_AT=step:29"}).exit_code, 128 + SIGKILL);
    const Checkpoint checkpoint = CheckpointStore(real_vfs(), run_in(average) + "/checkpoints", 100).load_latest();
    const auto zeros = [](const std::unique_ptr<Module>& model) {
      const std::vector<float> values = find_module(*model, "conv2").parameter("weight").value().to_vector<float>();
      return std::ranges::count(values, 0.0F);
    };
    EXPECT_EQ(zeros(saved_model(checkpoint)), 0) << average;
    EXPECT_EQ(zeros(evaluation_model(checkpoint)), 288) << average;
  }
}

// The averages of the last step's weights are taken before that step's mask.
TEST_F(PruneRuns, MasksOfTheLastStepHold) {
  expect_done(run_program(train("ramp", {"stages[1].prune.sparsity.end=26s"})));
  EXPECT_EQ(kept(run_in("ramp")), 115);
  expect_done(run_program(train("frozen", {"stages[1].prune={pattern: n_m, sr_ste: {freeze: 100%}}"})));
  EXPECT_EQ(kept(run_in("frozen")), 288);
}

TEST_F(PruneRuns, EveryPatternReachesWhatItCan) {
  const auto reached = [&](const std::string& runs, const std::vector<std::string>& changes) {
    expect_done(run_program(train(runs, changes)));
    return kept(run_in(runs));
  };
  EXPECT_EQ(reached("blocks", {"stages[1].prune.pattern=block", "stages[1].prune.block=[4,2]"}), 112) << "14 blocks of 8";
  EXPECT_EQ(reached("n_m", {"stages[1].prune={pattern: n_m}"}), 288);
  EXPECT_EQ(prunings(run_in("n_m")).size(), 1u);
  EXPECT_EQ(reached("both", {"stages[1].prune.pattern=tile_element", "stages[1].prune.group=4"}), 115);
  EXPECT_EQ(reached("channel", {"stages[1].prune.pattern=channel"}), 72) << "one output of 8";
}

TEST_F(PruneRuns, AForkGoesOnToAHigherTarget) {
  const Outcome killed = run_program(train("runs"), {"TESSERA_KILL_AT=step:24"});
  ASSERT_EQ(killed.exit_code, 128 + SIGKILL) << killed.output;
  const std::vector<std::string> fork{"fork", run_in("runs"), "--at", "22", "--runs", folder_ / "forks"};
  expect_done(run_program(joined(fork, {"stages[1].prune.sparsity.target=0.95"})));
  EXPECT_EQ(kept(run_in("forks")), 29);
  expect_outcome(run_program(joined(fork, {"stages[1].prune.scope=global"})), 2,
                 "the fork is in the middle of this stage, whose saved state needs it");
  expect_outcome(run_program({"resume", run_in("runs"), "stages[1].prune.sparsity.target=0.9"}), 2, "cannot change");
}

// The ramp ends 20 steps into its stage, which begins after step 13.
TEST_F(PruneRuns, AForkThatWouldMissItsTargetIsRefused) {
  ASSERT_EQ(run_program(train("runs"), {"TESSERA_KILL_AT=step:37"}).exit_code, 128 + SIGKILL);
  const auto fork = [&](const std::string& at, const std::vector<std::string>& changes) {
    return run_program(joined({"fork", run_in("runs"), "--at", at, "--runs", folder_ / "forks"}, changes));
  };
  const std::string sparsity = "stages[1].prune.sparsity";
  const auto refused = [&](const std::string& at, const std::vector<std::string>& changes, const std::string& part) {
    expect_outcome(fork(at, changes), 2, "fork: " + sparsity + part);
    EXPECT_FALSE(std::filesystem::exists(folder_ / "forks"));
  };
  const std::string early = "34", late = "37";  // 21 and 24 steps into the stage
  refused(late, {sparsity + ".target=0.9"}, ".end: is step 20 of the stage; the fork is after step 24, so the target would not");
  refused(early, {sparsity + ".target=0.9"}, ".end: is step 20 of the stage; the fork is after step 21");
  refused(late, {sparsity + "={target: 0.9, schedule: one_shot, begin: 21s}"}, ".begin: is step 21 of the stage");
  refused(late, {sparsity + ".target=0.7", sparsity + ".end=26s"}, ".target: is 0.7; 0.8003 of these weights are zero already");
  refused(late, {sparsity + ".target=0.9", sparsity + ".end=30s"}, ".end: is step 30 of a stage of 26");
  expect_done(fork(late, {sparsity + ".target=0.9", sparsity + ".end=26s"}));
  EXPECT_EQ(kept(run_in("forks")), 58);
  const Outcome resumed = run_program({"resume", run_in("runs"), sparsity + ".target=0.9"});
  expect_outcome(resumed, 2, "start a new one from it with: tessera fork");
  expect_in(resumed.output, "--at 26 ");
}

TEST_F(PruneRuns, EachOptionLeavesItsOwnWeights) {
  std::vector<std::string> seen;
  for (const char* change :
       {"threads.loader=0", "stages[1].prune.score=random", "stages[1].prune.score=taylor",
        "stages[1].prune.sparsity.schedule=iterative", "stages[1].prune.layers=conv*", "optimizer.name=adamw"}) {
    expect_done(run_program(
        train(change, joined({change}, std::string(change).ends_with("adamw") ? std::vector<std::string>{"~optimizer.momentum"}
                                                                              : std::vector<std::string>{}))));
    EXPECT_EQ(kept(run_in(change)), 115) << change;
    seen.push_back(tensors_of(run_in(change)));
    for (std::size_t i = 0; i + 1 < seen.size(); ++i) EXPECT_FALSE(seen[i] == seen.back()) << change;
  }
}

TEST_F(PruneRuns, SchedulesAndLayersThatCannotBeAreNamedBeforeTraining) {
  const auto refused = [&](const std::string& change, const std::string& part) {
    expect_outcome(run_program(train("none", {change})), 2, part);
    EXPECT_FALSE(std::filesystem::exists(folder_ / "none")) << change;
  };
  refused("stages[1].prune.sparsity.end=30s", "stages[1].prune.sparsity.end: is step 30 of a stage of 26");
  refused("stages[1].prune.sparsity.begin=20s", "stages[1].prune.sparsity.end: is begin");
  refused("stages[1].prune.layers=conv7", "stages[1].prune.layers: ");
  refused("stages[1].prune.sparsity.targets=[{layers: conv1, target: 0.9}]", "stages[1].prune.sparsity.targets[0].layers: ");
  refused("stages[1].prune.sparsity.target=1", "stages[1].prune.sparsity.target");
  refused("stages[1].prune.sparsity.schedule=one_shot", "has no effect with schedule: one_shot");
  refused("stages[1].prune.pattern=block", "stages[1].prune.layers: no layer has a weight that pattern block can hold");
  refused("stages[1].prune={pattern: block, block: [10, 8], layers: fc, sparsity: {target: 0.8}}",
          "stages[1].prune.sparsity.target: pattern block keeps one of its units in any case, and these weights have no other");
  refused("stages[1].prune.group=8", "stages[1].prune.group: has no effect with pattern: unstructured");
  refused("stages[1].prune={pattern: n_m, sparsity: {target: 0.8}}",
          "stages[1].prune.sparsity.target: is 0.8; pattern: n_m has 0.5");
  refused("stages[1].prune={pattern: n_m, sr_ste: {freeze: 27s}}", "stages[1].prune.sr_ste.freeze: is step 27 of a stage of 26");
  refused("~stages[1].train", "stages[1].prune: needs train");
  refused("stages[2]={name: tuned, train: 1e, prune: {sparsity: {target: 0.5, every: 2s}}}",
          "stages[2].prune.sparsity.target: is 0.5; 0.8003 of these weights are zero already, so nothing would be pruned");
  refused("stages[2]={name: tuned, train: 1e, prune: {pattern: n_m, sr_ste: {}}}",
          "stages[2].prune.sr_ste: trains dense weights; conv2.weight has a mask of an earlier stage");
}

}  // namespace
}  // namespace tessera::testing
