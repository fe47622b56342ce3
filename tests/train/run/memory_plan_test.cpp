// Compares the planned memory of a run with what its steps take.
#include "train/run/memory_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

#include "core/cpu/onednn_version.h"
#include "core/device/decisions.h"
#include "core/ops/conv2d_ways.h"
#include "core/rng.h"
#include "layers/self_attention.h"
#include "tests/train/plan/small_experiment.h"
#include "train/plan/plan.h"
#include "train/run/compute_dtype.h"
#include "train/run/model_state.h"
#include "train/run/run_state.h"
#include "train/run/session.h"
#include "train/run/stage_trainer.h"
#include "train/tasks/classification.h"

namespace tessera::testing {
namespace {

const Classification kTask;

// The allocator's peak over real training steps, including loader and data set.
std::int64_t measured_peak(const Experiment& experiment) {
  const ExperimentConfig& config = experiment.config;
  const auto in_use = static_cast<std::int64_t>(memory_stats(Device::cpu()).in_use);
  const DataSplits data = load_data(config.data, 0);
  const std::unique_ptr<Module> model = build_model(config.model, sample_shape(data));
  initialize(*model, 0);
  StageTrainer trainer(*model, config.stages[0].training, kTask, 0, 10, 10, compute_dtype_of(config));
  Loader loader(data.train, training_options(config.data, 0, 0));
  trainer.step(loader.next(), 0, 0);
  std::vector<Tensor> snapshot;  // the copy that an asynchronous save holds
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

// Uses the algorithms that are chosen without a clock.
void expect_memory(Experiment experiment, double tolerance) {
  experiment.config.deterministic = true;
  const MemoryPlan memory = *make_plan(experiment).stages[0].memory;
  const std::int64_t measured = measured_peak(experiment);
  const double ratio = static_cast<double>(memory.peak()) / static_cast<double>(measured);
  EXPECT_NEAR(ratio, 1.0, tolerance) << "planned " << memory.peak() << ", measured " << measured;
}

// The remaining difference is the rounding of the data set's size.
TEST(PlanMemory, IsWhatAStepTakesAtADoubledSize) {
  expect_memory(experiment(str(kConv, kTrain)), 0.01);
  for (const int batch : {24, 32, 48}) {
    expect_memory(experiment(str("model: {name: resnet20}\n", kTrain), batch), 0.01);
  }
  expect_memory(experiment(str("model: {name: lenet5}\nema: {decay: 0.9}\noptimizer: {name: adamw}\nclip_norm: 1\n", kTrain)),
                0.01);
}

// The peak of steps of the last stage, after its passes. `how` chooses the algorithms, and `taken` receives the choices.
std::int64_t measured_peak_of_run(const Experiment& experiment, const DecisionPolicy& how, DecisionMap* taken = nullptr) {
  const DecisionScope choosing(how);
  const auto in_use = static_cast<std::int64_t>(memory_stats(Device::cpu()).in_use);
  RunState state(experiment.config, load_data(experiment.config.data, 0));
  state.start(initial_model(real_vfs(), experiment.config, state.data()));
  state.prepare_stage();
  state.begin_training();
  state.step();
  reset_peak_memory(Device::cpu());
  for (int step = 0; step < 2; ++step) state.step();
  if (taken != nullptr) *taken = choosing.taken();
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

TEST(PlanMemory, OfConvolutionsWithoutAClockIsWhatAStepTakes) {
  for (const std::string& text : networks_of_convolutions()) {
    SCOPED_TRACE(text);
    Experiment planned = experiment(str("checkpoint: {async: false}\n", text), 32);
    planned.config.deterministic = true;
    const double plan = planned_peak(planned);
    const auto measured = static_cast<double>(measured_peak_of_run(planned, {}));
    EXPECT_NEAR(plan / measured, 1, 0.02) << "planned " << plan << ", measured " << measured;
  }
}

// Uses the choices of a clock, and choices that compute every convolution in the same way.
TEST(PlanMemory, WithTheChoicesOfARunIsWhatItTakes) {
  for (const std::string& text : networks_of_convolutions()) {
    for (const char* const parts : {"", "micro_batch: 16\n"}) {
      SCOPED_TRACE(str(parts, text));
      const Experiment planned = experiment(str("checkpoint: {async: false}\n", parts, text), 32);
      DecisionMap timed;
      measured_peak_of_run(planned, {.measure = true}, &timed);
      std::vector<DecisionMap> runs{timed};
      for (const char* const way : kBufferedConv2dWays) {
        for (auto& [key, choice] : runs.emplace_back(timed)) {
          if (key.starts_with("conv2d.")) choice = way;
        }
      }
      for (const DecisionMap& choices : runs) {
        const auto measured = static_cast<double>(measured_peak_of_run(planned, {.known = choices}));
        const auto plan = static_cast<double>(make_plan(planned, &choices).stages[0].memory->peak());
        EXPECT_NEAR(plan / measured, 1, 0.1) << "planned " << plan << ", measured " << measured;
      }
    }
  }
}

// A run mostly takes less than the way that needs most. How much less depends on what the processor runs fastest, so there is no
// bound on that side. A mixture of ways may take more. These mixtures are drawn, because a clock's differ from run to run.
TEST(PlanMemory, IsAtLeastThreeQuartersOfMixturesOfWays) {
  for (const std::string& text : networks_of_convolutions()) {
    SCOPED_TRACE(text);
    const Experiment planned = experiment(str("checkpoint: {async: false}\n", text), 32);
    const double plan = planned_peak(planned);
    DecisionMap choices;
    measured_peak_of_run(planned, {.measure = true}, &choices);
    for (std::uint64_t mixture = 0; mixture < 3; ++mixture) {
      for (auto& [key, choice] : choices) {
        const std::int64_t drawn = random_below(RngStream(1, key, "way"), mixture, 0, std::ssize(kBufferedConv2dWays));
        if (key.starts_with("conv2d.")) choice = kBufferedConv2dWays[static_cast<std::size_t>(drawn)];
      }
      const auto measured = static_cast<double>(measured_peak_of_run(planned, {.known = choices}));
      EXPECT_GT(plan / measured, 0.75) << "planned " << plan << ", measured " << measured;
    }
  }
}

TEST(PlanMemory, IsWhatAStepTakesAtOtherSizes) {
  expect_memory(experiment(str(kConv, kTrain), 51), 0.02);
  expect_memory(experiment(str("model: {name: lenet5}\n", kTrain), 100), 0.02);
  expect_memory(experiment(str(kConv, kTrain), 3), 0.02);  // no rounding but the data set's
}

// Few samples and many weights: the peak is at the end of backward, when activations are freed and gradients are not.
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
  EXPECT_EQ(one.gradients, 0);
  EXPECT_EQ(four.gradients, 4 * make_plan(parts).cost.parameters) << "those of one micro-batch wait for the next";
}

TEST(PlanMemory, NamesEachPart) {
  const std::string text = str("model: {name: mlp, hidden: [64]}\noptimizer: {name: adamw}\nema: {decay: 0.9}\n", kTrain);
  const Plan plan = make_plan(experiment(text + "clip_norm: 1\n"));
  const MemoryPlan& memory = *plan.stages[0].memory;
  const std::int64_t weights = 4 * plan.cost.parameters;
  const auto near = [](std::int64_t bytes, std::int64_t expected) {  // equal up to cache lines
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
  const MemoryPlan unclipped = *make_plan(experiment(text)).stages[0].memory;
  EXPECT_EQ(unclipped.gradients, 0) << "each is dropped in backward";
}

TEST(PlanMemory, CountsThePairsOfSparseAttention) {
  const auto planned = [](const char* sparse) {
    const ExperimentConfig config =
        experiment(str("model: {name: vit, layers: 2, width: 32, heads: 2, patch: 4", sparse, "}\n", kTrain)).config;
    const DataSplits data = load_data(config.data, 0);
    const std::unique_ptr<Module> model = build_model(config.model, sample_shape(data));
    initialize(*model, 0);
    const auto bytes_of_pairs = [&] {
      std::int64_t bytes = 0;
      for_each_module(*model, [&](const Module& module) {
        const auto* const attention = dynamic_cast<const SelfAttention*>(&module);
        if (attention != nullptr && attention->pattern()) bytes += attention->pattern()->bytes();
      });
      return bytes;
    };
    const std::int64_t drawn = bytes_of_pairs();
    const std::int64_t weights = plan_memory(*model, config, config.stages[0].training, data).weights;
    return std::tuple(weights, drawn, bytes_of_pairs());
  };
  const auto [dense, none, none_after] = planned("");
  const auto [sparse, drawn, used] = planned(", sparse: {band: 4, density: 0.3}");
  EXPECT_EQ(none_after, 0);
  EXPECT_GT(drawn, none);
  EXPECT_GT(used, drawn) << "with what a step makes of the drawn pairs";
  EXPECT_EQ(sparse, dense + used);
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

}  // namespace
}  // namespace tessera::testing
