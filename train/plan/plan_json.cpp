#include "core/config/read.h"
#include "train/plan/plan.h"

namespace tessera {
namespace {

Value list_of(const Shape& shape) {
  Value list = Value::list();
  for (const std::int64_t size : shape) list.as_list().emplace_back(size);
  return list;
}

Value network(const Trace& layers, const Cost& cost) {
  Value value = Value::map();
  value.set("parameters", cost.parameters);
  value.set("macs", cost.macs);
  value.set("weight_bytes", cost.weight_bytes);
  value.set("layers", to_value(layers));
  return value;
}

Value to_value(const RanksPlan& ranks) {
  Value value = Value::map();
  value.set("asked", ranks.asked);
  value.set("layers", ranks.layers);
  value.set("changed", ranks.changed);
  value.set("parameters_kept", ranks.parameters_kept);
  value.set("macs_kept", ranks.macs_kept);
  return value;
}

Value passes(const StagePlan& stage) {
  Value list = Value::list();
  for (const PassPlan& plan : stage.passes) {
    PassReport report = plan.report;
    Value pass = write(report);  // nothing was decomposed or timed: errors are 0 and speeds absent
    Value& ranks = pass.set("ranks", Value::list());
    for (const RanksPlan& each : plan.ranks) ranks.as_list().push_back(to_value(each));
    list.as_list().push_back(std::move(pass));
  }
  return list;
}

Value training(const std::optional<SchedulePlan>& schedule) {
  if (!schedule) return {};
  Value value = Value::map();
  value.set("steps", schedule->steps);
  value.set("epochs", schedule->epochs);
  value.set("schedule", schedule->name);
  value.set("first_lr", schedule->first_lr);
  value.set("peak_lr", schedule->peak_lr);
  value.set("last_lr", schedule->last_lr);
  value.set("warmup_steps", schedule->warmup_steps);
  return value;
}

Value memory_of(const std::optional<MemoryPlan>& memory) {
  if (!memory) return {};
  Value value = Value::map();
  value.set("peak", memory->peak());
  value.set("data_set", memory->data_set);
  value.set("loader", memory->loader);
  value.set("weights", memory->weights);
  value.set("optimizer", memory->optimizer);
  value.set("hooks", memory->hooks);
  value.set("snapshot", memory->snapshot);
  value.set("gradients", memory->gradients);
  value.set("activations", memory->activations);
  value.set("temporaries", memory->temporaries);
  return value;
}

Value disk_of(const DiskPlan& disk) {
  Value value = Value::map();
  value.set("bytes", disk.bytes());
  value.set("training_checkpoint", disk.training_bytes);
  value.set("end_checkpoint", disk.end_bytes);
  value.set("best", disk.best);
  value.set("newest", disk.newest);
  return value;
}

Value data_of(const Plan& plan) {
  Value value = Value::map();
  value.set("name", plan.data);
  value.set("train", plan.train_samples);
  value.set("val", plan.val_samples);
  value.set("test", plan.test_samples);
  value.set("input", list_of(plan.input));
  value.set("batch", plan.batch);
  value.set("steps_per_epoch", plan.steps_per_epoch);
  return value;
}

}  // namespace

Value to_value(const Trace& trace) {
  Value layers = Value::list();
  for (const LayerCost& row : trace) {
    Value layer = Value::map();
    layer.set("path", row.path);
    layer.set("kind", row.kind);
    layer.set("input", list_of(row.input));
    layer.set("output", list_of(row.output));
    layer.set("parameters", row.parameters);
    layer.set("macs", row.macs);
    layer.set("weight_bytes", row.weight_bytes);
    layers.as_list().push_back(std::move(layer));
  }
  return layers;
}

Value to_value(const Plan& plan) {
  Value value = Value::map();
  value.set("data", data_of(plan));
  value.set("device", plan.device);
  value.set("precision", plan.precision);
  value.set("network", network(plan.layers, plan.cost));
  Value& stages = value.set("stages", Value::list());
  for (const StagePlan& stage : plan.stages) {
    Value entry = Value::map();
    entry.set("name", stage.name);
    entry.set("passes", passes(stage));
    entry.set("network", network(stage.layers, stage.cost));
    entry.set("train", training(stage.schedule));
    entry.set("memory", memory_of(stage.memory));
    entry.set("disk", disk_of(stage.disk));
    stages.as_list().push_back(std::move(entry));
  }
  value.set("memory_peak", plan.memory_peak());
  value.set("disk_bytes", plan.disk_bytes());
  return value;
}

}  // namespace tessera
