// What a network says of a batch, in the precision that a run computes in.
#pragma once

#include "core/nn/module.h"

namespace tessera {

// network(x), with x rounded to `compute` once, so that the layers compute in it, and the answer in the dtype that losses take:
// parameter_dtype(compute), f32 for bf16.
Var scores(Module& network, const Tensor& x, const Context& context, DType compute);

}  // namespace tessera
