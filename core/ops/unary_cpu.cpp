// Built without fast-math: roots, powers and bounds, whose edge cases (NaN, 0, Inf) matter.
#include "core/cpu/map.h"
#include "core/ops/unary.h"
#include "core/ops/unary_math.h"

namespace tessera::cpu {

void sqrt_forward(const Tensor& x, const Tensor& y) { map("sqrt", SqrtForward{}, y, x); }

void sqrt_backward(const Tensor& y, const Tensor& grad_y, const Tensor& grad_x) {
  map("sqrt_backward", SqrtBackward{}, grad_x, y, grad_y);
}

// Squares are the common power, and std::pow costs fifty times as much.
void pow_forward(const Tensor& x, double exponent, const Tensor& y) {
  if (exponent == 2.0) map("pow", Square{}, y, x);
  else map("pow", PowForward{exponent}, y, x);
}

void pow_backward(const Tensor& x, double exponent, const Tensor& grad_y, const Tensor& grad_x) {
  if (exponent == 2.0) map("pow_backward", SquareBackward{}, grad_x, x, grad_y);
  else map("pow_backward", PowBackward{exponent}, grad_x, x, grad_y);
}

void clamp_forward(const Tensor& x, double low, double high, const Tensor& y) { map("clamp", ClampForward{low, high}, y, x); }

void clamp_backward(const Tensor& x, double low, double high, const Tensor& grad_y, const Tensor& grad_x) {
  map("clamp_backward", ClampBackward{low, high}, grad_x, x, grad_y);
}

}  // namespace tessera::cpu
