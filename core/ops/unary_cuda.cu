#include "core/cuda/kernel/map.cuh"
#include "core/ops/unary.h"
#include "core/ops/unary_exp_math.h"
#include "core/ops/unary_math.h"

namespace tessera::cuda {

void exp_forward(const Tensor& x, const Tensor& y) { map("exp", ExpForward{}, y, x); }

void exp_backward(const Tensor& y, const Tensor& grad_y, const Tensor& grad_x) {
  map("exp_backward", ExpBackward{}, grad_x, y, grad_y);
}

void log_forward(const Tensor& x, const Tensor& y) { map("log", LogForward{}, y, x); }

void log_backward(const Tensor& x, const Tensor& grad_y, const Tensor& grad_x) {
  map("log_backward", LogBackward{}, grad_x, x, grad_y);
}

void sqrt_forward(const Tensor& x, const Tensor& y) { map("sqrt", SqrtForward{}, y, x); }

void sqrt_backward(const Tensor& y, const Tensor& grad_y, const Tensor& grad_x) {
  map("sqrt_backward", SqrtBackward{}, grad_x, y, grad_y);
}

void sigmoid_forward(const Tensor& x, const Tensor& y) { map("sigmoid", SigmoidForward{}, y, x); }

void sigmoid_backward(const Tensor& y, const Tensor& grad_y, const Tensor& grad_x) {
  map("sigmoid_backward", SigmoidBackward{}, grad_x, y, grad_y);
}

void tanh_forward(const Tensor& x, const Tensor& y) { map("tanh", TanhForward{}, y, x); }

void tanh_backward(const Tensor& y, const Tensor& grad_y, const Tensor& grad_x) {
  map("tanh_backward", TanhBackward{}, grad_x, y, grad_y);
}

void silu_forward(const Tensor& x, const Tensor& y) { map("silu", SiluForward{}, y, x); }

void silu_backward(const Tensor& x, const Tensor& grad_y, const Tensor& grad_x) {
  map("silu_backward", SiluBackward{}, grad_x, x, grad_y);
}

// Squares are the common power, and pow costs many times as much.
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

}  // namespace tessera::cuda
