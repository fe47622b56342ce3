// Clipping by the global norm (Pascanu et al. 2013): g *= min(1, max_norm / (norm + 1e-6)) over all gradients together, as
// torch.nn.utils.clip_grad_norm_.
#pragma once

#include <span>
#include <vector>

#include "core/device/dispatch.h"
#include "core/nn/module.h"

namespace tessera {

// Returns the norm before clipping, an f64 scalar on the gradients' device: reading it is the caller's decision. It is NaN or
// Inf when any f32 gradient holds one, and only then, because the sum is in double. The gradients then hold NaN. The sum
// runs over blocks of fixed size in fixed order, so that the thread count moves no bit. Parameters without a gradient, or not
// trainable, do not count. f32 and f64.
Tensor clip_grad_norm(const std::vector<NamedParameter>& parameters, double max_norm);

namespace cpu {
void global_norm(std::span<const Tensor> tensors, const Tensor& norm);  // norm: f64 scalar
void scale_to_norm(std::span<const Tensor> tensors, const Tensor& norm, double max_norm);  // in place
}  // namespace cpu
namespace cuda {
void global_norm(std::span<const Tensor> tensors, const Tensor& norm);
void scale_to_norm(std::span<const Tensor> tensors, const Tensor& norm, double max_norm);
}  // namespace cuda

// global_norm() of the gradients that an update kernel reads. Does nothing where `norm` is undefined.
template <class Operands>
void norm_of_gradients(std::span<const Operands> operands, const Tensor& norm) {
  if (!norm.defined()) return;
  std::vector<Tensor> gradients;
  for (const Operands& o : operands) gradients.push_back(o.grad);
  TESSERA_DISPATCH(norm.device(), global_norm, gradients, norm);
}

}  // namespace tessera
