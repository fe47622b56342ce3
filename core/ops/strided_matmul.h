// Products of matrices that lie in tensors with strides: the strided-batched GEMM of BLAS. A kernel alone: no graph, no gradient.
#pragma once

#include <cstdint>

#include "core/dtype.h"

namespace tessera {

// Element (i, j) of matrix number `batch` lies at batch * batch_stride + i * row + j * column. A batch stride of 0: one matrix
// for the whole batch.
struct MatrixStrides {
  std::int64_t batch = 0, row = 0, column = 0;
};

// y [batch, m, n] = a [batch, m, k] b [batch, k, n].
struct StridedProduct {
  std::int64_t batch = 1, m = 1, n = 1, k = 1;
  MatrixStrides a = {}, b = {}, y = {};
};

namespace cpu {
// All sizes are positive; elements are f32 or f64. Of an f32 product each of a and b has a row or column stride of 1, and y a
// column stride of 1; a stride of a dimension of size 1 does not matter. No two elements of y share a place. Writes every one.
// Sums are those of one matrix product, f32 by oneDNN and f64 by the reference loops.
void strided_matmul(const StridedProduct& product, DType dtype, const void* a, const void* b, void* y);
}  // namespace cpu

}  // namespace tessera
