#include "train/plan/plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <vector>

#include "core/cpu/onednn_version.h"
#include "core/device/decisions.h"
#include "core/ops/conv2d_ways.h"
#include "core/support/error.h"
#include "layers/self_attention.h"
#include "tests/core/io/temporary_folder.h"
#include "train/config/yaml.h"
#include "train/run/compute_dtype.h"
#include "train/run/model_state.h"
#include "train/run/run_state.h"
#include "train/run/session.h"
#include "train/run/stage_trainer.h"
#include "train/tasks/classification.h"

namespace tessera {
namespace {

const Classification kTask;

constexpr const char* kConv =
    "model: {name: layers, layers: [{conv2d: {out: 16, kernel: 3, padding: 1, name: conv1}}, batch_norm, relu,\n"
    "  {conv2d: {out: 24, kernel: 3, stride: 2, padding: 1, name: conv2}}, relu, global_avg_pool, {linear: {out: 10}}]}\n";

Experiment experiment(const std::string& rest, int batch = 64) {
  const std::string text = str(
      "version: 1\nname: x\nthreads: {compute: 2, loader: 0}\ndata: {name: glyphs, count: 300, test_count: 40, batch: ", batch,
      "}\n", rest);
  return parse_experiment(parse_yaml(text, "x.yaml"));
}

// What the allocator counts over real training steps, loader and data set included.
std::int64_t measured_peak(const Experiment& experiment) {
  const ExperimentConfig& config = experiment.config;
  const auto in_use = static_cast<std::int64_t>(memory_stats(Device::cpu()).in_use);
  const DataSplits data = load_data(config.data, 0);
  const std::unique_ptr<Module> model = build_model(config.model, sample_shape(data));
  initialize(*model, 0);
  StageTrainer trainer(*model, config.stages[0].training, kTask, 0, 10, 10, compute_dtype_of(config));
  Loader loader(data.train, training_options(config.data, 0, 0));
  trainer.step(loader.next(), 0, 0);
  std::vector<Tensor> snapshot;  // as an asynchronous save holds it
  const auto copy = [&](const State& state) {
    for (const auto& [path, tensor] : state.tensors) snapshot.push_back(tensor.clone());
  };
  if (config.checkpoint.async) {
    copy(model_state(*model));
    for (const auto& [name, state] : trainer.state()) copy(state);
  }
  reset_peak_memory(Device::cpu());
  for (std::int64_t step = 1; step < 3; ++step) trainer.step(loader.next(), step, step);
  return static_cast<std::int64_t>(memory_stats(Device::cpu()).peak) - in_use;
}

// With the algorithms that run without a clock.
void expect_memory(Experiment experiment, double tolerance) {
  experiment.config.deterministic = true;
  const MemoryPlan memory = *make_plan(experiment).stages[0].memory;
  const std::int64_t measured = measured_peak(experiment);
  const double ratio = static_cast<double>(memory.peak()) / static_cast<double>(measured);
  EXPECT_NEAR(ratio, 1.0, tolerance) << "planned " << memory.peak() << ", measured " << measured;
}

constexpr const char* kTrain = "stages: [{name: a, train: 1e}]\n";

// What is left is the data set's own rounding.
TEST(PlanMemory, IsWhatAStepTakesAtADoubledSize) {
  expect_memory(experiment(str(kConv, kTrain)), 0.01);
  for (const int batch : {24, 32, 48}) {
    expect_memory(experiment(str("model: {name: resnet20}\n", kTrain), batch), 0.01);
  }
  expect_memory(experiment(str("model: {name: lenet5}\nema: {decay: 0.9}\noptimizer: {name: adamw}\nclip_norm: 1\n", kTrain)),
                0.01);
}

// Of steps of the last stage, after its passes, with the algorithms that `how` chooses.
std::int64_t measured_peak_of_run(const Experiment& experiment, const DecisionPolicy& how) {
  const DecisionScope choosing(how);
  const auto in_use = static_cast<std::int64_t>(memory_stats(Device::cpu()).in_use);
  RunState state(experiment.config, load_data(experiment.config.data, 0));
  state.start(initial_model(real_vfs(), experiment.config, state.data()));
  state.prepare_stage();
  state.begin_training();
  state.step();
  reset_peak_memory(Device::cpu());
  for (int step = 0; step < 2; ++step) state.step();
  return static_cast<std::int64_t>(memory_stats(Device::cpu()).peak) - in_use;
}

std::vector<std::string> networks_of_convolutions() {
  const auto compressed = [](const char* model, const char* factorise) {
    return str("model: {name: ", model, "}\nstages: [{name: a, train: 1e, factorise: {keep: always, ", factorise, "}}]\n");
  };
  return {str("model: {name: lenet5}\n", kTrain), str("model: {name: resnet8}\n", kTrain),
          str("model: {name: mlp, hidden: [300]}\n", kTrain),
          compressed("resnet8", "layers: 'layer*.conv*', format: spatial_svd, ranks: {macs: 0.5}"),
          compressed("resnet8", "layers: 'layer[23].*.conv*', format: tucker2, ranks: {macs: 0.4}")};
}

double planned_peak(const Experiment& experiment) { return static_cast<double>(make_plan(experiment).stages[0].memory->peak()); }

TEST(PlanMemory, UnderAClockIsThatOfTheWayThatTakesMost) {
  for (const std::string& text : networks_of_convolutions()) {
    SCOPED_TRACE(text);
    const Experiment planned = experiment(str("checkpoint: {async: false}\n", text), 32);
    std::int64_t most = 0;
    for (const char* const way : kBufferedConv2dWays) most = std::max(most, measured_peak_of_run(planned, {.forced = way}));
    const double plan = planned_peak(planned);
    EXPECT_NEAR(plan / static_cast<double>(most), 1, 0.1) << "planned " << plan << ", measured " << most;
  }
}

// How far a run lies below the way that takes most depends on what the processor runs fastest. A mixture of ways may lie above
// it.
TEST(PlanMemory, IsRarelyExceededByRunsWhoseConvolutionsAClockChooses) {
  for (const std::string& text : networks_of_convolutions()) {
    SCOPED_TRACE(text);
    const Experiment planned = experiment(str("checkpoint: {async: false}\n", text), 32);
    const double plan = planned_peak(planned);
    const auto measured = static_cast<double>(measured_peak_of_run(planned, {.measure = true}));
    EXPECT_GT(plan / measured, 0.75) << "planned " << plan << ", measured " << measured;
  }
}

TEST(PlanMemory, IsWhatAStepTakesAtOtherSizes) {
  expect_memory(experiment(str(kConv, kTrain), 51), 0.02);
  expect_memory(experiment(str("model: {name: lenet5}\n", kTrain), 100), 0.02);
  expect_memory(experiment(str(kConv, kTrain), 3), 0.02);  // taken as it is, but for the rounding of the data set
}

// Few samples and many weights: the peak lies at the end of backward, where activations are gone and gradients are not.
TEST(PlanMemory, FollowsThePeakFromWeightsToActivations) {
  for (const int batch : {8, 64, 256}) {
    SCOPED_TRACE(batch);
    expect_memory(experiment(str("model: {name: mlp, hidden: [500, 300]}\n", kTrain), batch), 0.02);
  }
}

TEST(PlanMemory, ActivationsOfBf16TakeTwoBytes) {
  if (!cpu::onednn_has_bf16()) GTEST_SKIP() << "the processor has neither avx512_bf16 nor AMX";
  const Experiment half = experiment(str("precision: bf16\nmodel: {name: resnet20}\n", kTrain), 32);
  expect_memory(half, 0.01);
  const MemoryPlan two = *make_plan(half).stages[0].memory;
  const MemoryPlan four = *make_plan(experiment(str("model: {name: resnet20}\n", kTrain), 32)).stages[0].memory;
  EXPECT_NEAR(static_cast<double>(two.activations) / static_cast<double>(four.activations), 0.5, 0.02);
  EXPECT_EQ(two.weights, four.weights);
  EXPECT_EQ(two.optimizer, four.optimizer);
}

TEST(PlanMemory, CountsAMicroBatchAndTheGradientsOfTheOneBefore) {
  const Experiment whole = experiment(str(kConv, kTrain));
  const Experiment parts = experiment(str(kConv, "micro_batch: 16\n", kTrain));
  expect_memory(parts, 0.02);
  const MemoryPlan one = *make_plan(whole).stages[0].memory;
  const MemoryPlan four = *make_plan(parts).stages[0].memory;
  EXPECT_NEAR(static_cast<double>(one.activations) / static_cast<double>(four.activations), 4.0, 0.05);
  EXPECT_EQ(one.loader, four.loader);
  EXPECT_EQ(one.gradients, four.gradients);
}

TEST(PlanMemory, NamesEachPart) {
  const Plan plan =
      make_plan(experiment(str("model: {name: mlp, hidden: [64]}\noptimizer: {name: adamw}\nema: {decay: 0.9}\n", kTrain)));
  const MemoryPlan& memory = *plan.stages[0].memory;
  const std::int64_t weights = 4 * plan.cost.parameters;
  const auto near = [](std::int64_t bytes, std::int64_t expected) {  // up to cache lines
    EXPECT_GE(bytes, expected);
    EXPECT_LE(bytes, expected + 1024);
  };
  near(memory.weights, weights);
  near(memory.optimizer, 2 * weights);  // two moments
  near(memory.hooks, weights);
  EXPECT_EQ(memory.gradients, weights);
  EXPECT_EQ(memory.data_set, 340 * (plan.input.numel() + 8));
  near(memory.loader, 64 * (4 * plan.input.numel() + 8));
  EXPECT_GT(memory.activations, 64 * 4 * 64);  // the hidden layer's output at least
}

TEST(PlanMemory, CountsThePairsOfSparseAttention) {
  const auto planned = [](const char* sparse) {
    const ExperimentConfig config =
        experiment(str("model: {name: vit, layers: 2, width: 32, heads: 2, patch: 4", sparse, "}\n", kTrain)).config;
    const DataSplits data = load_data(config.data, 0);
    const std::unique_ptr<Module> model = build_model(config.model, sample_shape(data));
    initialize(*model, 0);
    const std::int64_t weights = plan_memory(*model, config, config.stages[0].training, data).weights;
    std::int64_t pairs = 0;
    for_each_module(*model, [&](const Module& module) {
      const auto* const attention = dynamic_cast<const SelfAttention*>(&module);
      if (attention != nullptr && attention->pattern()) pairs += attention->pattern()->bytes();
    });
    return std::pair(weights, pairs);
  };
  const auto [dense, none] = planned("");
  const auto [sparse, pairs] = planned(", sparse: {band: 4, density: 0.3}");
  EXPECT_EQ(none, 0);
  EXPECT_GT(pairs, 2 * 2 * 50 * 8) << "a list of 50 rows for each head of two layers";
  EXPECT_EQ(sparse, dense + pairs);
}

TEST(PlanMemory, CountsTheBatchesThatTheLoaderHoldsAhead) {
  Experiment ahead = experiment(str(kConv, kTrain));
  const std::int64_t alone = make_plan(ahead).stages[0].memory->loader;
  ahead.config.threads.loader = 2;
  EXPECT_EQ(make_plan(ahead).stages[0].memory->loader, (LoaderOptions().prefetch + 1) * alone);
}

TEST(PlanMemory, LeavesTheModelAlone) {
  const ExperimentConfig config = experiment(str(kConv, kTrain)).config;
  const DataSplits data = load_data(config.data, 0);
  const Shape input = sample_shape(data);
  const std::unique_ptr<Module> model = build_model(config.model, input);
  initialize(*model, 0);
  State before = model_state(*model);
  for (auto& [path, tensor] : before.tensors) tensor = tensor.clone();
  plan_memory(*model, config, config.stages[0].training, data);
  for (const auto& [path, tensor] : model_state(*model).tensors) {
    EXPECT_EQ(tensor.to(DType::f64).to_vector<double>(), before.tensors.at(path).to(DType::f64).to_vector<double>()) << path;
  }
}

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

// A clock may leave each layer of `keep: faster` as it was.
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

// Runs it; returns the bytes of its checkpoints.
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
  EXPECT_EQ(plan.stages[0].disk.newest, 0);  // the last stage saves more than `keep`
  EXPECT_EQ(plan.stages[1].disk.training_bytes, 0);
  EXPECT_EQ(plan.stages[2].disk.newest, 2);
  EXPECT_GT(plan.stages[2].disk.training_bytes, plan.stages[2].disk.end_bytes);  // the average is gone at the end
  // Up to the digits of steps, byte counts and the pinned list in five manifests, and the file `latest`.
  EXPECT_NEAR(static_cast<double>(run_checkpoints(made)), static_cast<double>(plan.disk_bytes()), 5 * 100 + 16);
}

// A teacher is in each checkpoint until its last pupil ends, and in memory beside the step.
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
  // Epochs 1 and 2 of three, 1 to 3 of four; one of each is the best.
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
}  // namespace tessera
