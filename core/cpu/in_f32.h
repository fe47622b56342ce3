// bf16 operands of kernels that have no loops for them: widened, computed in f32, the result rounded once.
#pragma once

#include "core/tensor.h"

namespace tessera::cpu {

// Calls kernel(inputs..., result) on f32 copies of the inputs, and rounds the result to y's dtype.
template <class Kernel, class... Inputs>
void in_f32(Kernel&& kernel, const Tensor& y, const Inputs&... inputs) {
  const Tensor wide = Tensor::empty(y.shape(), DType::f32, y.device());
  kernel(inputs.to(DType::f32)..., wide);
  y.copy_from(wide);
}

}  // namespace tessera::cpu
