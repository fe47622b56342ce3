// Networks of stages that are over, kept for later stages that learn from them.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "core/device/device.h"
#include "core/nn/module.h"
#include "core/nn/state.h"
#include "train/checkpoint/store.h"
#include "train/experiment.h"

namespace tessera {

class Teachers {
 public:
  // At the end of the stage of this index: drops those that no later stage names.
  void stage_ends(const ExperimentConfig& config, std::size_t index);
  // After that stage's end: keeps a copy of its network where a later stage names it. The checkpoint of its end holds that
  // network as its own.
  void stage_over(const ExperimentConfig& config, std::size_t index, Module& model);
  // The teacher that the stage's `distill` block names; null without that block. Throws ConfigError where it is not there.
  Module* of(const StageConfig& stage) const;
  void to_device(Device device);
  std::int64_t bytes() const;

  static bool is_part(std::string_view name);  // of a checkpoint
  // Parts of a checkpoint, "teacher.<stage>", and the value of its manifest's key "teachers": their trees by stage.
  std::map<std::string, State> parts() const;
  Value trees() const;
  void load(const Checkpoint& checkpoint);  // on the host; throws IoError

 private:
  std::map<std::string, std::unique_ptr<Module>> networks_;  // by stage
};

}  // namespace tessera
