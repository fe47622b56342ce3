// The network of a checkpoint. Its module tree is the only source of structure: no experiment file is read, no pass replayed.
#pragma once

#include <memory>

#include "core/nn/module.h"
#include "train/checkpoint/store.h"

namespace tessera {

// The part that holds parameters, masks and buffers. Throws IoError when there is none.
const State& saved_weights(const Checkpoint& checkpoint);

// The network with the weights that training goes on with. Throws IoError when they do not fit the tree.
std::unique_ptr<Module> saved_model(const Checkpoint& checkpoint);

// Whether the checkpoint holds moving averages beside its weights: inside a stage with `ema`. At the stage's end the averages are
// the weights.
bool has_averages(const Checkpoint& checkpoint);

// The network with the weights that the run evaluated there: the moving averages where there are any, without the elements that
// are hidden by masks which follow the weights.
std::unique_ptr<Module> evaluation_model(const Checkpoint& checkpoint);

}  // namespace tessera
