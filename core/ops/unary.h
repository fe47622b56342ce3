// Functions of one operand, elementwise.
#pragma once

#include "core/autograd/var.h"

namespace tessera {

// All take f32, f64 or bf16 of any shape, throw DTypeError otherwise, and let NaN through.
Var neg(const Var& x);      // saves nothing
Var exp(const Var& x);      // saves y; grad_x = g * y
Var log(const Var& x);      // saves x; grad_x = g / x
Var sqrt(const Var& x);     // saves y; grad_x = g / (2 y)
Var sigmoid(const Var& x);  // saves y; grad_x = g * y * (1 - y)
Var tanh(const Var& x);     // saves y; grad_x = g * (1 - y^2)
Var silu(const Var& x);     // x * sigmoid(x); saves x; grad_x = g * s * (1 + x * (1 - s)), s = sigmoid(x)

// x^exponent. Saves x; grad_x = g * exponent * x^(exponent - 1), 0 for exponent 0.
Var pow(const Var& x, double exponent);
// min(max(x, low), high). Saves x; the gradient passes where low <= x <= high. Throws ConfigError when low > high.
Var clamp(const Var& x, double low, double high);

namespace cpu {
void exp_forward(const Tensor& x, const Tensor& y);
void exp_backward(const Tensor& y, const Tensor& grad_y, const Tensor& grad_x);
void log_forward(const Tensor& x, const Tensor& y);
void log_backward(const Tensor& x, const Tensor& grad_y, const Tensor& grad_x);
void sqrt_forward(const Tensor& x, const Tensor& y);
void sqrt_backward(const Tensor& y, const Tensor& grad_y, const Tensor& grad_x);
void sigmoid_forward(const Tensor& x, const Tensor& y);
void sigmoid_backward(const Tensor& y, const Tensor& grad_y, const Tensor& grad_x);
void tanh_forward(const Tensor& x, const Tensor& y);
void tanh_backward(const Tensor& y, const Tensor& grad_y, const Tensor& grad_x);
void silu_forward(const Tensor& x, const Tensor& y);
void silu_backward(const Tensor& x, const Tensor& grad_y, const Tensor& grad_x);
void pow_forward(const Tensor& x, double exponent, const Tensor& y);
void pow_backward(const Tensor& x, double exponent, const Tensor& grad_y, const Tensor& grad_x);
void clamp_forward(const Tensor& x, double low, double high, const Tensor& y);
void clamp_backward(const Tensor& x, double low, double high, const Tensor& grad_y, const Tensor& grad_x);
}  // namespace cpu
namespace cuda {
void exp_forward(const Tensor& x, const Tensor& y);
void exp_backward(const Tensor& y, const Tensor& grad_y, const Tensor& grad_x);
void log_forward(const Tensor& x, const Tensor& y);
void log_backward(const Tensor& x, const Tensor& grad_y, const Tensor& grad_x);
void sqrt_forward(const Tensor& x, const Tensor& y);
void sqrt_backward(const Tensor& y, const Tensor& grad_y, const Tensor& grad_x);
void sigmoid_forward(const Tensor& x, const Tensor& y);
void sigmoid_backward(const Tensor& y, const Tensor& grad_y, const Tensor& grad_x);
void tanh_forward(const Tensor& x, const Tensor& y);
void tanh_backward(const Tensor& y, const Tensor& grad_y, const Tensor& grad_x);
void silu_forward(const Tensor& x, const Tensor& y);
void silu_backward(const Tensor& x, const Tensor& grad_y, const Tensor& grad_x);
void pow_forward(const Tensor& x, double exponent, const Tensor& y);
void pow_backward(const Tensor& x, double exponent, const Tensor& grad_y, const Tensor& grad_x);
void clamp_forward(const Tensor& x, double low, double high, const Tensor& y);
void clamp_backward(const Tensor& x, double low, double high, const Tensor& grad_y, const Tensor& grad_x);
}  // namespace cuda

}  // namespace tessera
