// Elements picked along an axis.
#pragma once

#include "core/autograd/var.h"

namespace tessera {

// y[..., i, ...] = x[..., index[..., i, ...], ...] along `axis`; y has index's shape (i64, x's rank, no axis but `axis` longer
// than x's). Saves index; the gradient of an element is the sum over its uses. Throws ShapeError on shapes that do not
// fit or an index outside of x's axis, DTypeError or DeviceError on operands. A GPU does not wait to report an index: a wrong one
// gives NaN and adds to no gradient.
Var gather(const Var& x, int axis, const Tensor& index);

// Kernels: y and grad_y have index's shape; grad_x is contiguous and written in full.
namespace cpu {
void gather_forward(const Tensor& x, int axis, const Tensor& index, const Tensor& y);
void gather_backward(const Tensor& grad_y, int axis, const Tensor& index, const Tensor& grad_x);
}  // namespace cpu
namespace cuda {
void gather_forward(const Tensor& x, int axis, const Tensor& index, const Tensor& y);
void gather_backward(const Tensor& grad_y, int axis, const Tensor& index, const Tensor& grad_x);
}  // namespace cuda

}  // namespace tessera
