// Rows of a table, looked up by number.
#pragma once

#include "core/autograd/var.h"

namespace tessera {

// ids i64 [...], weight [v, d] -> [..., d]. Saves ids; the gradient of a row is the sum over its uses, in order of use.
// Throws ShapeError unless weight is a matrix and every id lies in 0..v-1, DTypeError or DeviceError on operands. A GPU does not
// wait to report an id: a wrong one gives a row of NaN and adds to no gradient.
Var embedding(const Tensor& ids, const Var& weight);

// Kernels on contiguous tensors; backward writes all of grad_weight.
namespace cpu {
void embedding_forward(const Tensor& ids, const Tensor& weight, const Tensor& y);
void embedding_backward(const Tensor& ids, const Tensor& grad_y, const Tensor& grad_weight);
}  // namespace cpu
namespace cuda {
void embedding_forward(const Tensor& ids, const Tensor& weight, const Tensor& y);
void embedding_backward(const Tensor& ids, const Tensor& grad_y, const Tensor& grad_weight);
}  // namespace cuda

}  // namespace tessera
