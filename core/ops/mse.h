// Mean squared error.
#pragma once

#include "core/autograd/var.h"

namespace tessera {

// x, target of one shape -> scalar mean((x - target)^2), summed in double. Saves both;
// grad_x = 2 g (x - target) / count, grad_target = -grad_x.
// Throws ShapeError when the shapes differ or are empty, DTypeError or DeviceError when the operands differ.
Var mse(const Var& x, const Var& target);

namespace cpu {
void mse_forward(const Tensor& x, const Tensor& target, const Tensor& y);
void mse_backward(const Tensor& x, const Tensor& target, const Tensor& grad_y, double scale, const Tensor& grad);
}  // namespace cpu
namespace cuda {
void mse_forward(const Tensor& x, const Tensor& target, const Tensor& y);
void mse_backward(const Tensor& x, const Tensor& target, const Tensor& grad_y, double scale, const Tensor& grad);
}  // namespace cuda

}  // namespace tessera
