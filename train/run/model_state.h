// Model tree <-> checkpoint: parameters, masks and buffers keyed by dotted path.
#pragma once

#include <memory>

#include "core/nn/module.h"
#include "core/nn/state.h"

namespace tessera {

// tensors: "<path>" for parameters and buffers, "<path>.mask" for masks. Values share storage with the model.
State model_state(Module& model);

// Every tensor of the state must have its place in the model and the other way round; shapes and dtypes must be equal.
// Throws IoError listing all that are missing, unexpected or mismatched; the model is unchanged then.
void load_model_state(Module& model, const State& state);

// The same modules with values of their own, on the same device.
std::unique_ptr<Module> copy_of(Module& model);

}  // namespace tessera
