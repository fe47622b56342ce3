#include "train/plan/disk_plan.h"

#include <algorithm>

#include "core/io/safetensors.h"
#include "layers/model_tree.h"
#include "layers/weight_count.h"
#include "train/checkpoint/manifest.h"
#include "train/run/decisions_file.h"
#include "train/run/model_state.h"
#include "train/run/position.h"
#include "train/run/stage_trainer.h"
#include "train/tasks/builtin.h"

namespace tessera {
namespace {

constexpr std::size_t kHashDigits = 32;  // XXH3-128 in hexadecimal

// Bytes that CheckpointStore::save() writes for these parts.
std::int64_t encoded_bytes(std::map<std::string, State> parts, Module& model, const RunHistory& history,
                           const StageResults& results, const Teachers& teachers, const Value& data_keys,
                           const Position& position) {
  parts.merge(teachers.parts());
  Manifest manifest;
  Value metas = Value::map();
  std::int64_t total = 0;
  const auto add = [&](const std::string& name, std::int64_t bytes) {
    manifest.files.push_back({name, bytes, std::string(kHashDigits, '0')});
    total += bytes;
  };
  for (const auto& [name, state] : parts) {
    metas.set(name, state.meta);
    if (state.tensors.empty()) continue;
    std::int64_t bytes = 0;
    encode_safetensors({.tensors = state.tensors, .metadata = {{"tessera.layout", "OHWI"}}},
                       [&](std::string_view piece) { bytes += static_cast<std::int64_t>(piece.size()); });
    add(name + ".safetensors", bytes);
    manifest.tensors += static_cast<std::int64_t>(state.tensors.size());
  }
  add("state.json", static_cast<std::int64_t>(to_json(metas, 2).size()) + 1);
  manifest.extra.set("model", describe(model));
  manifest.extra.set("position", write(position));
  manifest.extra.set("results", write(results));
  manifest.extra.set("teachers", teachers.trees());
  manifest.extra.set("stage_name", "");
  manifest.extra.set("input", Value::list(Value::List(4, Value(100))));
  for (const Value::Entry& entry : data_keys.as_map()) manifest.extra.set(entry.key, entry.value);
  manifest.extra.set("history", write(history));
  manifest.extra.set("decisions", to_value(DecisionMap()));
  return total + static_cast<std::int64_t>(encode_manifest(manifest).size());
}

// A number with as many digits as those that a run fills in.
constexpr double kLongNumber = 1.0 / 3.0;

// Fills in the errors of compressed layers, which the plan does not decompose.
void fill_errors(StageRecord& record) {
  for (PassReport& pass : record.passes) {
    for (LayerReport& row : pass.layers) {
      if (!row.stays_dense()) row.relative_error = kLongNumber;
    }
  }
}

void finish(StageRecord& record, const Position& position, Module& model) {
  record.done = true;
  if (count_weights(model).sparsity() > 0) record.sparsity = kLongNumber;
  if (!position.best) return;
  record.loss = kLongNumber;
  record.last = record.best = position.best;
  record.best_step = 0;
}

// Number of checkpoints that a stage saves before its last step.
std::int64_t saves_within(std::int64_t steps, std::int64_t every, std::int64_t per_epoch, bool best) {
  const std::int64_t inner = std::max<std::int64_t>(0, steps - 1);
  const std::int64_t timed = inner / every;
  if (!best) return timed;
  const std::int64_t improved = inner / per_epoch;  // at most one per epoch
  std::int64_t both = 0;
  if (every % per_epoch == 0) both = timed;
  if (per_epoch % every == 0) both = improved;
  return timed + improved - both;
}

// Sets which best checkpoints count besides stage ends. With newest_only the newest stage's, even its end, replaces the rest.
void plan_bests(std::vector<DiskPlan>& stages, const std::vector<std::int64_t>& steps, bool newest_only,
                std::int64_t steps_per_epoch) {
  DiskPlan* replaced = nullptr;
  bool newer = false;
  for (std::size_t i = stages.size(); i-- > 0;) {
    if (stages[i].training_bytes == 0) continue;
    const bool beside = steps[i] > steps_per_epoch;
    const bool stays = !newest_only || !newer;
    stages[i].best = beside && stays ? 1 : 0;
    if (beside && !stays && (!replaced || stages[i].training_bytes > replaced->training_bytes)) replaced = &stages[i];
    newer = true;
  }
  if (replaced != nullptr) replaced->replaced = 1;
}

}  // namespace

void DiskPlan::fields(Fields& f) {
  f.add_computed("bytes", bytes(), {.help = "of all that stay when the run has ended, at most, and of the one replaced"});
  f.add("training_checkpoint", training_bytes, {.help = "bytes of one saved while the stage trains; 0 when it does not train"});
  f.add("end_checkpoint", end_bytes, {.help = "bytes of the one at the stage's end, which always stays"});
  f.add("best", best, {.help = "1 when the best one stays and may be another than the last"});
  f.add("replaced", replaced,
        {.help = "1 when the best one goes as soon as a later stage's is saved, and is the largest that does"});
  f.add("newest", newest, {.help = "of the newest that stay, how many are of this stage, at most"});
}

DiskPlan plan_checkpoint(Module& model, const ExperimentConfig& config, std::size_t index, const StageResults& results,
                         Teachers& teachers, const Value& data_keys, RunHistory& history) {
  const StageConfig& stage = config.stages[index];
  DiskPlan plan;
  const State weights = model_state(model);
  Position position;
  fill_errors(history.of(stage.name));
  if (!stage.train) {
    finish(history.of(stage.name), position, model);
    teachers.stage_ends(config, index);
    plan.end_bytes = encoded_bytes({{"model", weights}}, model, history, results, teachers, data_keys, position);
    return plan;
  }
  const Task& task = task_of(config.data);
  position.best = Scored{std::string(task.metrics().front().key), kLongNumber};
  position.best_step = 0;
  std::map<std::string, State> parts = StageTrainer(model, stage.training, task, 0, 1, 1, DType::f32,
                                                    stage_hooks(stage, {.results = results, .teacher = teachers.of(stage)}))
                                           .state();
  parts["model"] = weights;
  plan.training_bytes = encoded_bytes(parts, model, history, results, teachers, data_keys, position);
  finish(history.of(stage.name), position, model);
  teachers.stage_ends(config, index);
  std::erase_if(parts, [](const auto& part) { return is_part_of_hook(part.first); });  // hooks end with the stage
  plan.end_bytes = encoded_bytes(parts, model, history, results, teachers, data_keys, position);
  return plan;
}

void plan_kept(std::vector<DiskPlan>& stages, const std::vector<std::int64_t>& steps, const CheckpointConfig& config,
               std::int64_t steps_per_epoch, bool validates) {
  const bool best = config.best && validates;
  if (best) plan_bests(stages, steps, config.keeps_newest_best_only(), steps_per_epoch);
  std::int64_t left = config.keep;
  for (std::size_t i = stages.size(); i-- > 0;) {
    if (stages[i].training_bytes == 0) continue;
    const std::int64_t every = std::max<std::int64_t>(1, config.every.resolve(steps_per_epoch, steps[i]));
    const std::int64_t counted = stages[i].best + stages[i].replaced;  // of those that the stage saves
    stages[i].newest = std::min(left, saves_within(steps[i], every, steps_per_epoch, best) - counted);
    left -= stages[i].newest;
  }
}

}  // namespace tessera
