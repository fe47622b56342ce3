#include "train/plan/plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <vector>

#include "core/support/error.h"
#include "tests/core/io/temporary_folder.h"
#include "tests/train/plan/small_experiment.h"
#include "train/config/yaml.h"
#include "train/run/session.h"

namespace tessera::testing {
namespace {

SchedulePlan schedule_of(const std::string& schedule, std::int64_t steps) {
  const Experiment made =
      experiment(str("model: {name: lenet5}\noptimizer: {name: sgd, lr: 0.4}\nschedule: ", schedule, "\n", kTrain));
  return plan_schedule(made.config.stages[0].training, steps, 10);
}

TEST(PlanSchedule, GivesTheRatesThatTrainingWillUse) {
  const SchedulePlan cosine = schedule_of("{name: cosine, warmup: 2e, min: 0.001}", 100);
  EXPECT_EQ(cosine.name, "cosine");
  EXPECT_EQ(cosine.warmup_steps, 20);
  EXPECT_DOUBLE_EQ(cosine.first_lr, 0.4 / 20);
  EXPECT_DOUBLE_EQ(cosine.peak_lr, 0.4);
  EXPECT_NEAR(cosine.last_lr, 0.001 + 0.399 * (1 + std::cos(M_PI * 79 / 80)) / 2, 1e-12);
  EXPECT_DOUBLE_EQ(cosine.epochs, 10);

  const SchedulePlan steps = schedule_of("{name: step, gamma: 0.1, milestones: [50%]}", 1000);
  EXPECT_EQ(steps.warmup_steps, 0);
  EXPECT_DOUBLE_EQ(steps.first_lr, 0.4);
  EXPECT_DOUBLE_EQ(steps.peak_lr, 0.4);
  EXPECT_DOUBLE_EQ(steps.last_lr, 0.4 * 0.1);

  const SchedulePlan cycle = schedule_of("{name: one_cycle, rise: 0.3, div: 25, final_div: 100}", 200);
  EXPECT_EQ(cycle.warmup_steps, 60);
  EXPECT_DOUBLE_EQ(cycle.first_lr, 0.4 / 25);
  EXPECT_DOUBLE_EQ(cycle.peak_lr, 0.4);
  EXPECT_DOUBLE_EQ(cycle.last_lr, 0.4 / 25 / 100);

  const SchedulePlan one = schedule_of("{name: constant}", 1);
  EXPECT_EQ(one.warmup_steps, 0);
  EXPECT_DOUBLE_EQ(one.last_lr, 0.4);
}

TEST(PlanRanks, GivesAskedAndReachedOfEachRule) {
  const Plan plan = make_plan(experiment(str(kConv, R"(stages:
  - name: a
    factorise:
      layers: "conv*"
      ranks: [{layers: "conv*", macs: 0.5}, {layers: conv1, out: 4, in: 1}]
)")));
  const std::vector<RanksPlan>& ranks = plan.stages[0].passes.at(0).ranks;
  ASSERT_EQ(ranks.size(), 2u);
  EXPECT_EQ(ranks[0].asked, "out 4 in 1");
  EXPECT_EQ(ranks[1].asked, "macs 0.5 per matched");
  EXPECT_EQ(ranks[1].layers, 1);
  EXPECT_EQ(ranks[1].changed, 1);
  EXPECT_LE(ranks[1].macs_kept, 0.5);
  EXPECT_GT(ranks[1].macs_kept, 0.4);
  EXPECT_FALSE(plan.stages[0].memory);
}

TEST(PlanRanks, ComparesTheLayersOfAllRules) {
  const Plan plan = make_plan(experiment(str(kConv, R"(stages:
  - name: a
    factorise:
      layers: "conv*"
      ranks: [{layers: conv2, macs: 0.5, multiple_of: 4}, {layers: conv1, energy: 0.9, multiple_of: 2}]
)")));
  const RuleComparison& comparison = plan.stages[0].passes.at(0).rules;
  EXPECT_EQ(comparison.layers, (std::vector<std::string>{"conv1", "conv2"})) << "as the network has them";
  ASSERT_FALSE(comparison.rules.empty());
  for (const RuleChoice& rule : comparison.rules) EXPECT_EQ(rule.ranks.size(), 2u) << rule.rule;
}

// With `keep: faster` the clock may leave any layer as it was.
TEST(Plan, CountsTheDenseNetworkWhereLayersMayGoBack) {
  const auto planned = [](const std::string& keep) {
    return make_plan(experiment(str(kConv, "stages:\n  - {name: dense, train: 1e}\n  - {name: small, factorise: {keep: ", keep,
                                    ", layers: conv2, ranks: {out: 4, in: 4}}}\n  - {name: tune, train: 1e}\n")));
  };
  const Plan stays = planned("always");
  const Plan may_go_back = planned("faster");
  EXPECT_EQ(may_go_back.stages[2].cost.parameters, stays.stages[2].cost.parameters);
  EXPECT_LT(stays.stages[2].disk.end_bytes, stays.stages[0].disk.end_bytes);
  EXPECT_GT(may_go_back.stages[1].disk.end_bytes, stays.stages[1].disk.end_bytes);
  EXPECT_GE(may_go_back.stages[2].disk.end_bytes, may_go_back.stages[0].disk.end_bytes);
  const std::int64_t dense = may_go_back.stages[0].memory->peak();
  EXPECT_EQ(may_go_back.stages[2].memory->peak(), std::max(dense, stays.stages[2].memory->peak()));
}

std::int64_t bytes_below(const std::filesystem::path& folder) {
  std::int64_t bytes = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) bytes += static_cast<std::int64_t>(entry.file_size());
  }
  return bytes;
}

// Runs the experiment and returns the bytes of its checkpoints.
std::int64_t run_checkpoints(const Experiment& experiment) {
  const TemporaryFolder runs;
  const RunFolder folder = RunFolder::create(real_vfs(), runs.path().string(), "x");
  Session::start(real_vfs(), experiment, load_inputs(real_vfs(), experiment.config), "", folder, {}).run();
  return bytes_below(folder.checkpoints());
}

constexpr const char* kStages =
    "stages:\n  - {name: dense, train: 3e}\n"
    "  - {name: small, factorise: {keep: always, layers: conv2, ranks: {out: 4, in: 4}}}\n"
    "  - {name: tune, train: 4e}\n";

TEST(PlanDisk, IsWhatARunLeavesBehind) {
  const Experiment made = experiment(str(kConv,
                                         "optimizer: {name: sgd, momentum: 0.9}\nema: {decay: 0.9}\ncheckpoint: {every: 1e, "
                                         "keep: 2, best: false}\ndeterministic: true\n",
                                         kStages));
  const Plan plan = make_plan(made);
  EXPECT_EQ(plan.stages[0].disk.newest, 0);  // the last stage saves more checkpoints than `keep`
  EXPECT_EQ(plan.stages[1].disk.training_bytes, 0);
  EXPECT_EQ(plan.stages[2].disk.newest, 2);
  EXPECT_GT(plan.stages[2].disk.training_bytes, plan.stages[2].disk.end_bytes);  // the end drops the average
  // The tolerance covers the digits of steps, byte counts and pinned lists in five manifests, and the file `latest`.
  EXPECT_NEAR(static_cast<double>(run_checkpoints(made)), static_cast<double>(plan.disk_bytes()), 5 * 100 + 16);
}

// A teacher is in each checkpoint until its last pupil ends, and in memory during each step.
TEST(PlanDisk, CountsTheNetworkOfADistillingStagesTeacher) {
  const auto made = [](const char* distill) {
    return experiment(str(kConv,
                          "checkpoint: {every: 1e, keep: 2, best: false}\ndeterministic: true\n"
                          "stages:\n  - {name: dense, train: 3e}\n"
                          "  - {name: small, factorise: {keep: always, layers: conv2, ranks: {out: 4, in: 4}}}\n"
                          "  - {name: tune, train: 4e",
                          distill, "}\n"));
  };
  const Experiment taught = made(", distill: {from: dense}");
  const Plan plan = make_plan(taught), alone = make_plan(made(""));
  const std::int64_t network = 4 * plan.stages[0].cost.parameters;
  EXPECT_GE(plan.stages[1].disk.end_bytes, alone.stages[1].disk.end_bytes + network);
  EXPECT_GE(plan.stages[2].disk.training_bytes, alone.stages[2].disk.training_bytes + network);
  EXPECT_LT(plan.stages[2].disk.end_bytes, alone.stages[2].disk.end_bytes + network) << "the last pupil has ended";
  EXPECT_GE(plan.stages[2].memory->peak(), alone.stages[2].memory->peak() + network);
  EXPECT_EQ(plan.stages[0].memory->peak(), alone.stages[0].memory->peak());
  EXPECT_NEAR(static_cast<double>(run_checkpoints(taught)), static_cast<double>(plan.disk_bytes()), 5 * 100 + 16);
}

TEST(PlanDisk, KeepsTheBestOfEachStageAtMost) {
  const Experiment made = experiment(
      str(kConv, "optimizer: {name: sgd, momentum: 0.9}\ncheckpoint: {every: 1e, keep: 1}\ndeterministic: true\n", kStages));
  const Plan plan = make_plan(made);
  EXPECT_EQ(plan.stages[0].disk.best, 1);
  EXPECT_EQ(plan.stages[1].disk.best, 0);
  EXPECT_EQ(plan.stages[2].disk.newest, 1);
  const std::int64_t measured = run_checkpoints(made);
  const std::int64_t fixed = plan.stages[0].disk.end_bytes + plan.stages[1].disk.end_bytes + plan.stages[2].disk.end_bytes;
  EXPECT_LE(measured, plan.disk_bytes() + 7 * 100);
  EXPECT_GE(measured, fixed - 7 * 100);
}

TEST(PlanDisk, KeepsOneBestOfARunAndTheOneThatItReplaced) {
  const auto planned = [](const char* keep_best) {
    return experiment(str(kConv, "checkpoint: {every: 1e, keep: 1, keep_best: ", keep_best, "}\ndeterministic: true\n", kStages));
  };
  const Plan run = make_plan(planned("run")), stage = make_plan(planned("stage"));
  EXPECT_EQ(run.stages[0].disk.best, 0);
  EXPECT_EQ(run.stages[0].disk.replaced, 1);
  EXPECT_EQ(run.stages[2].disk.best, 1);
  EXPECT_EQ(run.disk_bytes(), stage.disk_bytes()) << "of two stages the one's best is the other's to replace";
  const std::int64_t measured = run_checkpoints(planned("run"));
  EXPECT_LE(measured, run.disk_bytes() - run.stages[0].disk.training_bytes + 7 * 100) << "the replaced one is gone";
}

TEST(PlanDisk, CountsNoMoreThanAStageSaves) {
  const Plan plan = make_plan(experiment(str(kConv, "checkpoint: {every: 1e, keep: 9}\n", kStages)));
  // Stage 0 saves epochs 1 and 2 of three before its end, stage 2 saves 1 to 3 of four. One of each is the best.
  EXPECT_EQ(plan.stages[0].disk.newest, 1);
  EXPECT_EQ(plan.stages[2].disk.newest, 2);
  const Plan short_one = make_plan(experiment(str(kConv, "stages: [{name: a, train: 2s}]\n")));
  EXPECT_EQ(short_one.stages[0].disk.newest + short_one.stages[0].disk.best, 0);
}

TEST(Plan, ChecksTheExperimentFirst) {
  try {
    make_plan(experiment(str(kConv, "stages: [{name: a, factorise: {layers: conv7, ranks: {macs: 0.5}}}]\n")));
    FAIL() << "no error";
  } catch (const ConfigError& error) {
    EXPECT_EQ(std::string(error.what()).find("x.yaml:7:40: stages[0].factorise.layers: selector 'conv7' matches no layer"), 0u)
        << error.what();
  }
}

}  // namespace
}  // namespace tessera::testing
