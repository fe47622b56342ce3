// The hooks of a stage, made from its configuration by name.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/config/duration.h"
#include "core/nn/hook.h"
#include "train/experiment.h"
#include "train/run/stage_results.h"

namespace tessera {

// What a hook may know when it is made: the model that it takes part in training, which outlives it, the stage's length, and
// where its values of a step stand.
struct HookSetting {
  Module& model;
  StageLength length;
  StepSlots& slots;
  std::uint64_t seed = 0;  // of the run
};

using MakeHook = std::function<std::unique_ptr<Hook>(const HookSetting&)>;

// Of the blocks that any training stage may have, in the order in which the hooks are called.
std::vector<MakeHook> training_hooks(const TrainingConfig& config);

// Of the blocks that belong to one stage; `results` has what its passes settled. `teacher`: the network that the stage's
// `distill` block names, on the device of the model; not read without the block.
std::vector<MakeHook> stage_hooks(const StageConfig& stage, const StageResults& results, Module* teacher, DType compute);

// The name of a hook's part of a checkpoint, "hook.ema", and whether a part is a hook's.
std::string part_of_hook(std::string_view name);
bool is_part_of_hook(std::string_view part);

// The part whose tensors are evaluated in the place of the weights of the same paths.
std::string evaluation_part();

}  // namespace tessera
