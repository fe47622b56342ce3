// Gated linear unit with silu as its gate (Shazeer, "GLU Variants Improve Transformer", 2020, equation 6, behind its products).
#pragma once

#include "core/autograd/var.h"

namespace tessera {

// x [..., 2 n] = a and b side by side -> y [..., n] = silu(a) * b, with silu(a) = a s, s = sigmoid(a). Saves x;
// grad_a = g b s (1 + a (1 - s)), grad_b = g a s. Throws ShapeError when x is a scalar or its last dimension is odd, DTypeError
// unless f32, f64 or bf16 (f16 on a GPU).
Var swiglu(const Var& x);

// x, grad_x [rows, 2 n]; y, grad_y [rows, n]; all contiguous.
namespace cpu {
void swiglu_forward(const Tensor& x, const Tensor& y);
void swiglu_backward(const Tensor& x, const Tensor& grad_y, const Tensor& grad_x);
}  // namespace cpu
namespace cuda {
void swiglu_forward(const Tensor& x, const Tensor& y);
void swiglu_backward(const Tensor& x, const Tensor& grad_y, const Tensor& grad_x);
}  // namespace cuda

}  // namespace tessera
