// Dropout (Srivastava et al., JMLR 2014), scaled at training time.
#pragma once

#include "core/autograd/var.h"
#include "core/rng.h"

namespace tessera {

// y = x / (1 - p) where element i is kept, else 0. Element i is kept when word i % 4 of block i / 4 of `stream`, at the number
// step * 2^20 + micro_step taken from `step_state` (a StepState's tensor), lies in the upper 1 - p of its range: the mask depends
// on neither threads nor device. Saves the mask as u8; grad_x = g / (1 - p) where kept. p == 0 returns x itself.
// Throws ConfigError unless 0 <= p < 1, DTypeError unless f32, f64 or bf16, DeviceError when step_state lies elsewhere.
Var dropout(const Var& x, double p, RngStream stream, const Tensor& step_state);

// Kernels on contiguous tensors; mask is u8, 1 = kept.
namespace cpu {
void dropout_forward(const Tensor& x, double p, RngStream stream, const Tensor& step_state, const Tensor& y, const Tensor& mask);
void dropout_backward(const Tensor& grad_y, double p, const Tensor& mask, const Tensor& grad_x);
}  // namespace cpu
namespace cuda {
void dropout_forward(const Tensor& x, double p, RngStream stream, const Tensor& step_state, const Tensor& y, const Tensor& mask);
void dropout_backward(const Tensor& grad_y, double p, const Tensor& mask, const Tensor& grad_x);
}  // namespace cuda

}  // namespace tessera
