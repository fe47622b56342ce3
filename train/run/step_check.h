// The parts of a training step that are no ops, checked while a NumericCheck is active. Each throws NumericError naming the first
// tensor with a NaN or Inf.
#pragma once

#include <vector>

#include "core/nn/module.h"
#include "core/nn/state.h"
#include "train/data/batch.h"

namespace tessera {

void check_batch(const Batch& batch);
// After backward and the hooks on it, before clipping. Buffers too: running statistics may overflow where no output does.
void check_gradients(Module& model, const std::vector<NamedParameter>& parameters);
// After the optimiser and the hooks on it; the gradients are still there.
void check_update(const std::vector<NamedParameter>& parameters, const State& optimizer);

}  // namespace tessera
