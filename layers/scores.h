// What a network says of a batch, in the precision that a run computes in.
#pragma once

#include "core/nn/module.h"

namespace tessera {

// network(x), where x is the first of `parts`; layers find all parts in their context. An x of real numbers is first rounded to
// `compute`, once, so that the layers compute in it. Whole numbers and the other parts stay as they are. The answer is in the
// dtype that losses take: parameter_dtype(compute), f32 for bf16.
Var scores(Module& network, std::span<const NamedTensor> parts, const Context& context, DType compute);

}  // namespace tessera
