#include "core/config/read.h"
#include "train/plan/plan.h"

namespace tessera {
namespace {

Value list_of(const Shape& shape) {
  Value list = Value::list();
  for (const std::int64_t size : shape) list.as_list().emplace_back(size);
  return list;
}

Value before_after(std::int64_t before, std::int64_t after) {
  Value value = Value::map();
  value.set("before", before);
  value.set("after", after);
  return value;
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
  value.set("factored", ranks.factored);
  value.set("parameters_kept", ranks.parameters_kept);
  value.set("macs_kept", ranks.macs_kept);
  return value;
}

Value to_value(const LayerReport& row) {
  Value value = Value::map();
  value.set("path", row.path);
  value.set("decision", std::string(name_of(row.decision)));
  value.set("reason", row.reason);
  value.set("format", row.format);
  value.set("ranks_asked", row.ranks_asked);
  value.set("rank_out", row.ranks ? Value(row.ranks->out) : Value());
  value.set("rank_in", row.ranks ? Value(row.ranks->in) : Value());
  value.set("relative_error", Value());  // nothing was decomposed
  value.set("parameters", before_after(row.parameters_before, row.parameters_after));
  value.set("macs", before_after(row.macs_before, row.macs_after));
  return value;
}

Value factorisation(const StagePlan& stage) {
  if (!stage.factorised) return {};
  const PassReport& report = *stage.factorised;
  Value value = Value::map();
  value.set("parameters", before_after(report.before.parameters, report.after.parameters));
  value.set("macs", before_after(report.before.macs, report.after.macs));
  Value& ranks = value.set("ranks", Value::list());
  for (const RanksPlan& plan : stage.ranks) ranks.as_list().push_back(to_value(plan));
  Value& layers = value.set("layers", Value::list());
  for (const LayerReport& row : report.layers) layers.as_list().push_back(to_value(row));
  return value;
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
    entry.set("factorise", factorisation(stage));
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
