#include "train/run/teachers.h"

#include <algorithm>

#include "core/support/error.h"
#include "layers/builtin.h"
#include "layers/model_tree.h"
#include "train/run/model_state.h"

namespace tessera {
namespace {

constexpr std::string_view kPrefix = "teacher.";

std::string part_of(const std::string& stage) { return str(kPrefix, stage); }

bool is_named_after(const ExperimentConfig& config, std::size_t index, const std::string& stage) {
  return std::any_of(config.stages.begin() + static_cast<std::ptrdiff_t>(index) + 1, config.stages.end(),
                     [&](const StageConfig& later) { return later.distill && later.distill->from == stage; });
}

}  // namespace

void Teachers::stage_ends(const ExperimentConfig& config, std::size_t index) {
  std::erase_if(networks_, [&](const auto& entry) { return !is_named_after(config, index, entry.first); });
}

void Teachers::stage_over(const ExperimentConfig& config, std::size_t index, Module& model) {
  const std::string& name = config.stages[index].name;
  if (is_named_after(config, index, name)) networks_[name] = copy_of(model);
}

Module* Teachers::of(const StageConfig& stage) const {
  if (!stage.distill) return nullptr;
  const auto found = networks_.find(stage.distill->from.value());
  TESSERA_CHECK(found != networks_.end(), ConfigError, "stage ", stage.name,
                ": the checkpoint does not hold the network of stage ", *stage.distill->from,
                ", which it distills from; fork at the end of that stage");
  return found->second.get();
}

void Teachers::to_device(Device device) {
  for (auto& [stage, network] : networks_) move_to(*network, device);
}

bool Teachers::is_part(std::string_view name) { return name.starts_with(kPrefix); }

std::map<std::string, State> Teachers::parts() const {
  std::map<std::string, State> parts;
  for (const auto& [stage, network] : networks_) parts[part_of(stage)] = model_state(*network);
  return parts;
}

std::int64_t Teachers::bytes() const {
  std::int64_t bytes = 0;
  for (const auto& [stage, network] : networks_) {
    for (const auto& [path, tensor] : model_state(*network).tensors) bytes += static_cast<std::int64_t>(tensor.bytes());
  }
  return bytes;
}

Value Teachers::trees() const {
  Value trees = Value::map();
  for (const auto& [stage, network] : networks_) trees.set(stage, describe(*network));
  return trees;
}

void Teachers::load(const Checkpoint& checkpoint) {
  networks_.clear();
  const Value* const trees = checkpoint.manifest.find("teachers");  // absent in manifests of older programs
  if (trees == nullptr) return;
  for (const Value::Entry& entry : trees->as_map()) {
    const auto part = checkpoint.parts.find(part_of(entry.key));
    TESSERA_CHECK(part != checkpoint.parts.end(), IoError, "checkpoint: the part '", part_of(entry.key), "' is missing");
    std::unique_ptr<Module>& network = networks_[entry.key];
    network = rebuild(entry.value, builtin_layers());
    load_model_state(*network, part->second);
  }
}

}  // namespace tessera
