// Affine map of the last dimension: y = x weight^T + bias.
// x [..., in], weight [out, in], bias [out] or undefined -> y [..., out]. Saves x and weight, on a GPU in x's dtype;
// grad_x = grad_y weight, grad_weight = grad_y^T x, grad_bias = column sums of grad_y.
// Beside x of bf16 weight, bias and their gradients are f32.
// Throws ShapeError when the last dimension of x, weight and bias do not fit.
#pragma once

#include "core/autograd/var.h"

namespace tessera {

Var linear(const Var& x, const Var& weight, const Var& bias = {});

// x [rows, in], grad_y [rows, out], all contiguous; bias and grad_bias may be undefined. Every output element is written.
// With `relu`, y = max(y, 0), which in f32 and bf16 may answer 0 where the sum is NaN.
namespace cpu {
void linear_forward(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& y, bool relu = false);
void linear_backward_input(const Tensor& grad_y, const Tensor& weight, const Tensor& grad_x);
void linear_backward_weight(const Tensor& x, const Tensor& grad_y, const Tensor& grad_weight, const Tensor& grad_bias);
}  // namespace cpu
namespace cuda {
void linear_forward(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& y, bool relu = false);
void linear_backward_input(const Tensor& grad_y, const Tensor& weight, const Tensor& grad_x);
void linear_backward_weight(const Tensor& x, const Tensor& grad_y, const Tensor& grad_weight, const Tensor& grad_bias);
}  // namespace cuda

}  // namespace tessera
