// The hooks of a stage, made from its configuration by name.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/comm/communicator.h"
#include "core/config/duration.h"
#include "core/nn/hook.h"
#include "train/data/batch.h"
#include "train/experiment.h"
#include "train/run/stage_results.h"

namespace tessera {

// Calls a function with the gradient of a batch's mean loss in the parameters, see StageTrainer::with_gradients.
using WithGradients = std::function<void(const Batch& batch, const std::function<void()>& body)>;
// Calls `each` with `count` training batches from number `first` on, none of them one that the stage trains on, and the same in
// every call.
using ReadBatches = std::function<void(std::int64_t first, std::int64_t count, const std::function<void(const Batch&)>& each)>;

// What a hook may know when it is made: the model that it takes part in training, which outlives it, the stage's length,
// where its values of a step stand, and between steps the trainer's gradients.
struct HookSetting {
  Module& model;
  StageLength length;
  StepSlots& slots;
  std::uint64_t seed = 0;  // of the run
  WithGradients with_gradients = {};
  Communicator& ranks = one_process();  // that train the stage
};

using MakeHook = std::function<std::unique_ptr<Hook>(const HookSetting&)>;

// The hooks of the blocks that any training stage may have, in the order in which the hooks are called.
std::vector<MakeHook> training_hooks(const TrainingConfig& config);

// What the run has for the hooks of a stage.
struct HookInputs {
  const StageResults& results;  // what passes settled
  Module* teacher = nullptr;  // the network that the stage's `distill` block names, on the model's device; not read without it
  DType compute = DType::f32;
  ReadBatches batches = {};  // may be empty where no hook is asked to do anything between steps
};

// The hooks of the blocks that belong to one stage.
std::vector<MakeHook> stage_hooks(const StageConfig& stage, const HookInputs& inputs);

// The name of a hook's part of a checkpoint, "hook.ema", and whether a part is a hook's.
std::string part_of_hook(std::string_view name);
bool is_part_of_hook(std::string_view part);

// The part whose tensors are evaluated in the place of the weights of the same paths.
std::string evaluation_part();
// The part that may name weights. An evaluation sees only some of their elements (hide_as_evaluated).
std::string hiding_part();

}  // namespace tessera
