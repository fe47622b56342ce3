// Gaussian error linear unit (Hendrycks and Gimpel, 2016).
#pragma once

#include "core/autograd/var.h"

namespace tessera {

enum class GeluForm { erf, tanh };

// erf: y = x * Phi(x), Phi the normal distribution function; tanh: Phi(x) ~ (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) / 2.
// Saves x; grad_x = g * dy/dx of the chosen form. Throws DTypeError unless f32, f64 or bf16.
Var gelu(const Var& x, GeluForm form = GeluForm::erf);

namespace cpu {
void gelu_forward(const Tensor& x, GeluForm form, const Tensor& y);
void gelu_backward(const Tensor& x, const Tensor& grad_y, GeluForm form, const Tensor& grad_x);
}  // namespace cpu
namespace cuda {
void gelu_forward(const Tensor& x, GeluForm form, const Tensor& y);
void gelu_backward(const Tensor& x, const Tensor& grad_y, GeluForm form, const Tensor& grad_x);
}  // namespace cuda

}  // namespace tessera
