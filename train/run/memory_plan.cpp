#include "train/run/memory_plan.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "core/device/memory_history.h"
#include "core/ops/conv2d_ways.h"
#include "layers/builtin.h"
#include "layers/model_tree.h"
#include "layers/scores.h"
#include "layers/self_attention.h"
#include "train/data/device_feed.h"
#include "train/run/compute_dtype.h"
#include "train/run/model_state.h"
#include "train/run/stage_trainer.h"
#include "train/tasks/builtin.h"

namespace tessera {
namespace {

std::int64_t in_use(Device device) { return static_cast<std::int64_t>(memory_stats(device).in_use); }

std::int64_t bytes_of(const State& state) {
  std::int64_t bytes = 0;
  for (const auto& [path, tensor] : state.tensors) bytes += static_cast<std::int64_t>(tensor.bytes());
  return bytes;
}

// Bytes of the pair lists of sparse attention. They are in host memory, and copies of a network share them.
std::int64_t bytes_of_pairs(Module& model) {
  std::set<const AttentionPattern*> patterns;
  for_each_module(model, [&](const Module& module) {
    const auto* const attention = dynamic_cast<const SelfAttention*>(&module);
    if (attention != nullptr && attention->pattern()) patterns.insert(attention->pattern().get());
  });
  std::int64_t bytes = 0;
  for (const AttentionPattern* const pattern : patterns) bytes += pattern->bytes();
  return bytes;
}

std::int64_t bytes_of(const Dataset& data) { return static_cast<std::int64_t>(data.bytes()); }

// Samples of the dry steps. With fewer than 8, the library shares less work of weight gradients among threads and takes less
// memory than the line through larger sizes would say.
std::vector<std::int64_t> dry_sizes(std::int64_t micro_batch) {
  if (micro_batch <= 8) return {micro_batch};
  std::int64_t small = micro_batch;
  while (small % 2 == 0 && small >= 16) small /= 2;
  if (2 * small > kDrySamples) small = 8;
  return 2 * small <= micro_batch ? std::vector{small, 2 * small} : std::vector{small};
}

// The value at `size`, on the line through values that were measured at `sizes`.
double at_size(const std::vector<std::int64_t>& sizes, const std::vector<double>& values, std::int64_t size) {
  if (sizes.size() == 1) return values[0];
  const double slope = (values[1] - values[0]) / static_cast<double>(sizes[1] - sizes[0]);
  return values[0] + slope * static_cast<double>(size - sizes[0]);
}

// How the convolutions of dry steps run.
enum class Ways {
  first,  // in the way that is taken without a clock
  most,  // in each way that a clock may choose; the highest peak counts
  given,  // in the ways of the given choices, which are for whole micro-batches
};

// A copy of the model on the device with its own trainer, whose steps change nothing of the caller's model.
class DryRun {
 public:
  DryRun(Module& model, const TrainingConfig& training, const Task& task, std::span<const MakeHook> hooks, std::int64_t batch,
         std::span<const Field> fields, DType compute, Device device)
      : device_(device),
        fields_(fields),
        task_(task),
        compute_(compute),
        micro_batch_(training.micro_batch.value_or(batch)),
        accumulates_(micro_batch_ < batch),
        training_(training),
        hooks_(hooks) {
    const std::int64_t before = in_use(device_);
    model_ = rebuild(describe(model), builtin_layers());
    move_to(*model_, device_);
    load_model_state(*model_, model_state(model));
    weights_ = in_use(device_) - before;
  }

  std::int64_t weights() const { return weights_; }

  // Fills in everything that a step needs in addition to the weights.
  void measure(MemoryPlan& plan, Ways ways) {
    const std::vector<std::int64_t> sizes = ways == Ways::given ? std::vector{micro_batch_} : dry_sizes(micro_batch_);
    std::vector<double> activations;
    for (const std::int64_t size : sizes) activations.push_back(saved_by_forward(size));
    plan.activations = std::llround(at_size(sizes, activations, micro_batch_));
    double peak = peak_of_step(sizes, plan);
    if (ways == Ways::most) peak = std::max(peak, peak_of_ways(sizes, plan));
    plan.temporaries = std::llround(peak) - plan.gradients - plan.activations;
  }

 private:
  void measure_state(const StageTrainer& trainer, std::int64_t all, MemoryPlan& plan) const {
    plan.gradients = trainer.updates_early() && !accumulates_ ? 0 : bytes_of_gradients();
    plan.hooks = 0;
    for (const auto& [name, state] : trainer.state()) {
      if (is_part_of_hook(name)) plan.hooks += bytes_of(state);
    }
    plan.optimizer = all - plan.hooks;
  }

  std::int64_t bytes_of_gradients() const {
    std::int64_t bytes = 0;
    for (const NamedParameter& entry : named_parameters(*model_)) {
      if (entry.parameter->trainable()) bytes += static_cast<std::int64_t>(entry.parameter->value().bytes());
    }
    return bytes;
  }

  double peak_of_step(const std::vector<std::int64_t>& sizes, MemoryPlan& plan) {
    std::vector<std::vector<double>> histories;
    for (const std::int64_t size : sizes) {
      // The second micro-batch runs while the gradients of the first are in memory. A third would add nothing.
      training_.micro_batch = accumulates_ ? std::optional(size) : std::nullopt;
      const std::int64_t before = in_use(device_);
      StageTrainer trainer(*model_, training_, task_, 0, 1, 2, compute_, hooks_);
      measure_state(trainer, in_use(device_) - before, plan);
      histories.push_back(history_of_step(trainer, accumulates_ ? 2 * size : size));
    }
    return highest(sizes, histories);
  }

  double peak_of_ways(const std::vector<std::int64_t>& sizes, MemoryPlan& plan) {
    double peak = 0;
    for (const char* const way : kBufferedConv2dWays) {
      const DecisionScope forced({.forced = way});
      peak = std::max(peak, peak_of_step(sizes, plan));
      if (forced.log().forced.empty()) break;  // no convolution has a choice
    }
    return peak;
  }

  double saved_by_forward(std::int64_t size) {
    const Batch batch = Batch::zeros(fields_, size, device_);
    const StepState step(device_);
    const Context context{.training = true, .seed = 0, .step = &step, .recompute = training_.recompute};
    { scores(*model_, batch.parts(), context, compute_); }  // memory that a first call keeps for good is not part of the graph
    const std::int64_t before = in_use(device_);
    const Var output = scores(*model_, batch.parts(), context, compute_);
    return static_cast<double>(in_use(device_) - before);
  }

  // Bytes in use over the course of a step, above those in use between steps.
  std::vector<double> history_of_step(StageTrainer& trainer, std::int64_t samples) {
    const Batch batch = Batch::zeros(fields_, samples, device_);
    const std::int64_t before = in_use(device_);
    trainer.step(batch, 0, 0);  // what it keeps for good, such as a convolution's scratch, is counted in the next step
    const MemoryHistory history(device_);
    trainer.step(batch, 1, 1);
    std::vector<double> above;
    for (const std::size_t bytes : history.in_use())
      above.push_back(static_cast<double>(static_cast<std::int64_t>(bytes) - before));
    return above;
  }

  // The highest peak. If the steps differ in structure (a library chose other algorithms), only their peaks are used.
  double highest(const std::vector<std::int64_t>& sizes, std::vector<std::vector<double>> histories) const {
    if (histories.front().size() != histories.back().size()) {
      for (std::vector<double>& history : histories) history = {*std::max_element(history.begin(), history.end())};
    }
    double peak = 0;
    for (std::size_t i = 0; i < histories.front().size(); ++i) {
      peak = std::max(peak, at_size(sizes, {histories.front()[i], histories.back()[i]}, micro_batch_));
    }
    return peak;
  }

  Device device_;
  std::span<const Field> fields_;
  const Task& task_;
  DType compute_;
  std::int64_t micro_batch_;
  bool accumulates_;
  TrainingConfig training_;
  std::span<const MakeHook> hooks_;
  std::unique_ptr<Module> model_;
  std::int64_t weights_ = 0;
};

std::int64_t loader_bytes(const ExperimentConfig& config, std::span<const Field> fields, Device device) {
  const std::int64_t before = in_use(device);
  const Batch batch = Batch::empty(fields, config.data.batch, device);
  const std::int64_t ahead = config.threads.loader > 0 ? LoaderOptions().prefetch : 0;
  const std::int64_t batches = device.is_cpu() ? ahead + 1 : DeviceFeed::kSlots + 1;
  return batches * (in_use(device) - before);
}

}  // namespace

void MemoryPlan::fields(Fields& f) {
  f.add_computed("peak", peak(), {.help = "bytes at the highest point of a step: the sum of the others"});
  f.add("data_set", data_set, {.help = "samples of all splits that are held"});
  f.add("loader", loader, {.help = "batches held ahead, and the one in use"});
  f.add("weights", weights, {.help = "parameters, masks, buffers, and on a CPU the pairs of sparse attention"});
  f.add("optimizer", optimizer, {.help = "its state"});
  f.add("hooks", hooks, {.help = "moving averages, low-rank copies and dual variables, teachers"});
  f.add("snapshot", snapshot, {.help = "the copy that an asynchronous save writes"});
  f.add("gradients", gradients, {.help = "of all trainable parameters; 0 where weights are updated while backward goes on"});
  f.add("activations", activations, {.help = "saved for backward, of one micro-batch"});
  f.add("temporaries", temporaries, {.help = "the rest of the step"});
}

MemoryPlan plan_memory(Module& model, const ExperimentConfig& config, const TrainingConfig& training, const DataSplits& data,
                       std::span<const MakeHook> hooks, std::int64_t teachers, const DecisionMap* choices) {
  // The scope is needed inside a run too: its clock would time and record shapes that the run never has. Choices that are not in
  // `choices` are measured, as the run that is given them will do.
  const DecisionScope fixed(
      {.measure = choices != nullptr && !config.deterministic, .known = choices != nullptr ? *choices : DecisionMap()});
  const Tf32Products products(takes_tf32(config));
  const Device device = resolve_device(config.device);
  MemoryPlan plan;
  if (device.is_cpu()) plan.data_set = bytes_of(*data.train.dataset) + bytes_of(*data.test.dataset);
  const std::vector<Field>& fields = data.train.dataset->fields();
  plan.loader = loader_bytes(config, fields, device);
  DryRun run(model, training, task_of(config.data), hooks, config.data.batch, fields, compute_dtype_of(config), device);
  plan.weights = run.weights();
  run.measure(plan, choices != nullptr ? Ways::given : device.is_cpu() && !config.deterministic ? Ways::most : Ways::first);
  plan.hooks += teachers;
  if (config.checkpoint.async && device.is_cpu()) plan.snapshot = plan.weights + plan.optimizer + plan.hooks;
  if (device.is_cpu()) plan.weights += bytes_of_pairs(model);  // includes the pairs that the steps above have made
  return plan;
}

}  // namespace tessera
