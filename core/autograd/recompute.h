// Computing again instead of keeping: the memory of a part of the graph against the time of its forward.
#pragma once

#include <functional>
#include <span>

#include "core/autograd/var.h"

namespace tessera {

// f(inputs), of which backward finds nothing but the inputs: it runs f again and sweeps what that records (Chen et al., 2016,
// "Training deep nets with sublinear memory cost"). f reads no other leaf, changes nothing, and gives the same value again.
Var recompute(std::span<const Var> inputs, std::function<Var(std::span<const Var>)> f);

}  // namespace tessera
