// Rectified linear unit.
#pragma once

#include "core/autograd/var.h"

namespace tessera {

// y = max(x, 0), elementwise; NaN stays NaN. Saves y; grad_x = g where y > 0, else 0. Throws DTypeError unless f32, f64 or bf16.
Var relu(const Var& x);

namespace cpu {
void relu_forward(const Tensor& x, const Tensor& y);
void relu_backward(const Tensor& y, const Tensor& grad_y, const Tensor& grad_x);
}  // namespace cpu
namespace cuda {
void relu_forward(const Tensor& x, const Tensor& y);
void relu_backward(const Tensor& y, const Tensor& grad_y, const Tensor& grad_x);
}  // namespace cuda

}  // namespace tessera
