// The four operations on two operands, with broadcasting, and on an operand and a number.
#pragma once

#include "core/autograd/var.h"

namespace tessera {

// y = a op b elementwise; shapes broadcast by the trailing-dimension rule, and a gradient is summed over the axes along which
// its operand was repeated. add and sub save nothing; mul saves a for grad_b = g * a and b for grad_a = g * b; div saves b and
// y: grad_a = g / b, grad_b = -g * y / b. Operands are saved only when the other one needs a gradient.
// Throws ShapeError when the shapes do not broadcast, DTypeError or DeviceError when the operands differ.
Var add(const Var& a, const Var& b);
Var sub(const Var& a, const Var& b);
Var mul(const Var& a, const Var& b);
Var div(const Var& a, const Var& b);

// x + value, value * x, value - x, value / x. Only the last saves anything: x and y, grad_x = -g * y / x.
Var add_scalar(const Var& x, double value);
Var mul_scalar(const Var& x, double value);
Var rsub_scalar(double value, const Var& x);
Var rdiv_scalar(double value, const Var& x);

// Kernels: inputs broadcast to y; y may be one of them.
namespace cpu {
void add(const Tensor& a, const Tensor& b, const Tensor& y);
void sub(const Tensor& a, const Tensor& b, const Tensor& y);
void mul(const Tensor& a, const Tensor& b, const Tensor& y);
void div(const Tensor& a, const Tensor& b, const Tensor& y);
void affine(const Tensor& x, double scale, double shift, const Tensor& y);  // scale * x + shift
void rdiv_scalar(double value, const Tensor& x, const Tensor& y);
void div_negated(const Tensor& a, const Tensor& b, const Tensor& y);  // -a / b
}  // namespace cpu
namespace cuda {
void add(const Tensor& a, const Tensor& b, const Tensor& y);
void sub(const Tensor& a, const Tensor& b, const Tensor& y);
void mul(const Tensor& a, const Tensor& b, const Tensor& y);
void div(const Tensor& a, const Tensor& b, const Tensor& y);
void affine(const Tensor& x, double scale, double shift, const Tensor& y);
void rdiv_scalar(double value, const Tensor& x, const Tensor& y);
void div_negated(const Tensor& a, const Tensor& b, const Tensor& y);
}  // namespace cuda

}  // namespace tessera
