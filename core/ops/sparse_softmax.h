// Softmax over the kept elements of each row of a sparse matrix. Sparse attention (core/ops/sparse_attention.h) has it in its own
// kernels, beside the products.
#pragma once

#include "core/autograd/var.h"
#include "core/ops/sparse_weight.h"

namespace tessera {

// values [batch..., count], in the order of the pattern's elements, which are the same for every entry of the batch -> y of
// the same shape: softmax(scale * values) over the elements of each row, as softmax (core/ops/softmax.h) gives them where the
// others are -inf. A row without elements gives nothing; one that is all -inf is NaN, as in softmax; a NaN makes its whole row
// NaN. Saves y; grad = scale * y * (g - sum(g * y)). The pattern's rows are those of its first dimension. Throws ShapeError
// unless values.dim(-1) is the pattern's count, ConfigError unless scale is finite, DTypeError unless f32, f64, bf16 or, on a
// GPU, f16.
Var sparse_softmax(const Var& values, const SparseWeightPtr& pattern, double scale = 1.0);

// Kernels on contiguous tensors [batch..., count > 0]; row r of an entry is [offsets[r], offsets[r + 1]), offsets i64 [rows + 1].
namespace cpu {
void sparse_softmax_forward(const Tensor& x, const Tensor& offsets, double scale, const Tensor& y);
void sparse_softmax_backward(const Tensor& y, const Tensor& grad_y, const Tensor& offsets, double scale, const Tensor& grad_x);
}  // namespace cpu
namespace cuda {
void sparse_softmax_forward(const Tensor& x, const Tensor& offsets, double scale, const Tensor& y);
void sparse_softmax_backward(const Tensor& y, const Tensor& grad_y, const Tensor& offsets, double scale, const Tensor& grad_x);
}  // namespace cuda

}  // namespace tessera
