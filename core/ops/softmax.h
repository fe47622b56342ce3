// Softmax and its logarithm over the last dimension.
#pragma once

#include "core/autograd/var.h"

namespace tessera {

// x [..., n] -> y [..., n], each row shifted by its maximum first. Both save y.
// softmax: grad_x = y * (g - sum(g * y)). log_softmax: grad_x = g - exp(y) * sum(g). A NaN makes its whole row NaN.
// Throws ShapeError on scalars, DTypeError unless f32, f64 or bf16.
Var softmax(const Var& x);
Var log_softmax(const Var& x);

// Kernels on contiguous tensors [rows..., n].
namespace cpu {
void softmax_forward(const Tensor& x, const Tensor& y);
void softmax_backward(const Tensor& y, const Tensor& grad_y, const Tensor& grad_x);
void log_softmax_forward(const Tensor& x, const Tensor& y);
void log_softmax_backward(const Tensor& y, const Tensor& grad_y, const Tensor& grad_x);
}  // namespace cpu
namespace cuda {
void softmax_forward(const Tensor& x, const Tensor& y);
void softmax_backward(const Tensor& y, const Tensor& grad_y, const Tensor& grad_x);
void log_softmax_forward(const Tensor& x, const Tensor& y);
void log_softmax_backward(const Tensor& y, const Tensor& grad_y, const Tensor& grad_x);
}  // namespace cuda

}  // namespace tessera
