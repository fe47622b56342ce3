// Rows of a table, looked up by number.
#pragma once

#include "core/autograd/var.h"

namespace tessera {

// ids i64 [...], weight [v, d] -> [..., d]. Saves ids; the gradient of a row is the sum over its uses, in order of use. On the
// CPU it is added to what other uses of the weight have given, such as the output layer of a language model, without a tensor of
// its own. Throws ShapeError unless weight is a matrix and every id lies in 0..v-1, DTypeError or DeviceError on operands. A GPU
// does not wait to report an id: a wrong one gives a row of NaN and adds to no gradient.
Var embedding(const Tensor& ids, const Var& weight);

// Kernels on contiguous tensors; backward writes all of grad_weight.
namespace cpu {
void embedding_forward(const Tensor& ids, const Tensor& weight, const Tensor& y);
void embedding_backward(const Tensor& ids, const Tensor& grad_y, const Tensor& grad_weight);
void embedding_add(const Tensor& ids, const Tensor& grad_y, const Tensor& sum);  // grad_weight is added to what is there
}  // namespace cpu
namespace cuda {
void embedding_forward(const Tensor& ids, const Tensor& weight, const Tensor& y);
void embedding_backward(const Tensor& ids, const Tensor& grad_y, const Tensor& grad_weight);
}  // namespace cuda

}  // namespace tessera
