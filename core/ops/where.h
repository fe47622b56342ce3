// Choice between two operands.
#pragma once

#include "core/autograd/var.h"

namespace tessera {

// y = a where mask is not 0, else b; mask u8, a and b broadcast together. Saves the mask; each gradient is g where its operand
// was taken, summed over the axes along which it was repeated. NaN in the operand not taken does not reach y.
// Throws ShapeError when the shapes do not broadcast, DTypeError or DeviceError on operands.
Var where(const Tensor& mask, const Var& a, const Var& b);

// Kernels; inputs broadcast to the last argument. where_backward: grad = grad_y where mask (inverted: where not mask), else 0.
namespace cpu {
void where_forward(const Tensor& mask, const Tensor& a, const Tensor& b, const Tensor& y);
void where_backward(const Tensor& mask, const Tensor& grad_y, bool inverted, const Tensor& grad);
}  // namespace cpu
namespace cuda {
void where_forward(const Tensor& mask, const Tensor& a, const Tensor& b, const Tensor& y);
void where_backward(const Tensor& mask, const Tensor& grad_y, bool inverted, const Tensor& grad);
}  // namespace cuda

}  // namespace tessera
