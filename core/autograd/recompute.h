// Computing again instead of keeping: the memory of a part of the graph against the time of its forward (Chen et al., 2016,
// "Training deep nets with sublinear memory cost").
#pragma once

#include <functional>
#include <span>

#include "core/autograd/var.h"

namespace tessera {

// f(inputs). It keeps only the inputs for backward, which runs f again and sweeps what that records. f reads no other leaf,
// changes nothing, and gives the same value again.
Var recompute(std::span<const Var> inputs, std::function<Var(std::span<const Var>)> f);

// f(x), where f reads the leaves `parameters` too, as a module's forward does. The sweep inside adds to their gradients. f is
// recorded both times, and forgotten the first time, so that ops that choose by what is recorded choose alike: the bytes are
// those of f(x) itself, where no other part of the graph reads these leaves.
Var recompute(const Var& x, std::span<const Var> parameters, std::function<Var(const Var&)> f);

}  // namespace tessera
