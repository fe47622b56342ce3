// The unary functions that use exp, log and tanh. Built with fast-math, which vectorises them. No formula here tests for NaN, and
// the vector functions return NaN for NaN.
#include "core/cpu/map.h"
#include "core/ops/unary.h"
#include "core/ops/unary_exp_math.h"

namespace tessera::cpu {

void exp_forward(const Tensor& x, const Tensor& y) { map("exp", ExpForward{}, y, x); }

void exp_backward(const Tensor& y, const Tensor& grad_y, const Tensor& grad_x) {
  map("exp_backward", ExpBackward{}, grad_x, y, grad_y);
}

void log_forward(const Tensor& x, const Tensor& y) { map("log", LogForward{}, y, x); }

void log_backward(const Tensor& x, const Tensor& grad_y, const Tensor& grad_x) {
  map("log_backward", LogBackward{}, grad_x, x, grad_y);
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

}  // namespace tessera::cpu
