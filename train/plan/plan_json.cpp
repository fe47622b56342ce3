#include "core/config/read.h"
#include "train/plan/plan.h"

namespace tessera {
namespace {

std::vector<std::int64_t> sizes_of(const Shape& shape) { return {shape.begin(), shape.end()}; }

struct LayerRow : LayerCost {
  void fields(Fields& f) {
    f.add("path", path, {.help = "where it stands in the network"});
    f.add("kind", kind, {.help = "what it is"});
    f.add_computed("input", sizes_of(input), {.help = "its shape, of one sample"});
    f.add_computed("output", sizes_of(output), {.help = "its shape, of one sample"});
    f.add("parameters", parameters, {.help = "how many it has"});
    f.add("macs", macs, {.help = "multiply-accumulates per sample"});
    f.add("weight_bytes", weight_bytes, {.help = "parameters and buffers as stored"});
  }
};

struct NetworkPlan {
  Cost cost;
  std::vector<LayerRow> layers;

  void fields(Fields& f) {
    f.add("parameters", cost.parameters, {.help = "of all layers"});
    f.add("macs", cost.macs, {.help = "multiply-accumulates per sample"});
    f.add("weight_bytes", cost.weight_bytes, {.help = "parameters and buffers as stored"});
    f.add("layers", layers, {.help = "those without layers inside, in the order of the forward"});
  }
};

NetworkPlan network(const Trace& layers, const Cost& cost) {
  NetworkPlan plan{cost, {}};
  for (const LayerCost& row : layers) plan.layers.push_back(LayerRow{row});
  return plan;
}

struct DataPlan {
  Plan& plan;

  void fields(Fields& f) {
    f.add("name", plan.data, {.help = "of the data set"});
    f.add("train", plan.train_samples, {.help = "samples to train on"});
    f.add("val", plan.val_samples, {.help = "samples to validate on"});
    f.add("test", plan.test_samples, {.help = "samples to test on"});
    f.add_computed("input", sizes_of(plan.input), {.help = "shape of one sample: [1, h, w, c]"});
    f.add("batch", plan.batch, {.help = "samples of a step"});
    f.add("steps_per_epoch", plan.steps_per_epoch, {.help = "steps that see every sample once"});
  }
};

}  // namespace

void SchedulePlan::fields(Fields& f) {
  f.add("steps", steps, {.help = "of the stage"});
  f.add("epochs", epochs, {.help = "of the stage"});
  f.add("schedule", name, {.help = "its name"});
  f.add("first_lr", first_lr, {.help = "learning rate of the first step"});
  f.add("peak_lr", peak_lr, {.help = "the highest learning rate"});
  f.add("last_lr", last_lr, {.help = "learning rate of the last step"});
  f.add("warmup_steps", warmup_steps, {.help = "steps during which the rate rises; 0 when the first has the peak"});
}

void RanksPlan::fields(Fields& f) {
  f.add("asked", asked, {.help = "as the experiment file says"});
  f.add("layers", layers, {.help = "for which it was asked"});
  f.add("changed", changed, {.help = "of them, those that do not stay dense"});
  f.add("parameters_kept", parameters_kept, {.help = "fraction of these layers' parameters"});
  f.add("macs_kept", macs_kept, {.help = "fraction of these layers' MACs"});
}

void PassPlan::fields(Fields& f) {
  report.fields(f);
  f.add("ranks", ranks, {.help = "asked and reached, by rule"});
  f.add("comparison", rules, {.help = "what usual rules would choose"});
}

void StagePlan::fields(Fields& f) {
  f.add("name", name, {.help = "of the stage"});
  f.add("passes", passes, {.help = "what each does to which layer; nothing was decomposed or timed"});
  f.add_computed("network", network(layers, cost), {.help = "after the passes"});
  f.add("train", schedule, {.help = "null when the stage does not train", .nullable = true});
  f.add("admm", admm, {.help = "null without an admm block", .nullable = true});
  f.add("memory", memory, {.help = "bytes that a training step needs; null when the stage does not train", .nullable = true});
  f.add("disk", disk, {.help = "the stage's checkpoints"});
}

void Plan::fields(Fields& f) {
  f.add_computed("data", DataPlan{*this}, {.help = "what the run trains on"});
  f.add("device", device, {.help = "where it trains"});
  f.add("precision", precision, {.help = "what it computes in"});
  f.add_computed("network", network(layers, cost), {.help = "before the first stage"});
  f.add("stages", stages, {.help = "in their order"});
  f.add_computed("memory_peak", memory_peak(), {.help = "bytes of the stage that needs most; 0 when none trains"});
  f.add_computed("disk_bytes", disk_bytes(),
                 {.help = "checkpoints at the end of the run, at most, and a best one that is replaced"});
}

Value to_value(const Trace& trace) {
  Value layers = Value::list();
  for (const LayerCost& row : trace) layers.as_list().push_back(write(LayerRow{row}));
  return layers;
}

Value to_value(const Plan& plan) { return write(plan); }

}  // namespace tessera
