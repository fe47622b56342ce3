// target += source, in place: gradient sums, outside of any graph.
#pragma once

#include "core/tensor.h"

namespace tessera {

// Equal shapes, dtypes (f32, f64 or bf16) and devices.
void accumulate(const Tensor& target, const Tensor& source);

namespace cpu { void accumulate(const Tensor& target, const Tensor& source); }
namespace cuda { void accumulate(const Tensor& target, const Tensor& source); }

}  // namespace tessera
