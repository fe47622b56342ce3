// Products of matrices that lie in tensors with strides: the strided-batched GEMM of BLAS, as the libraries of both devices take
// it.
#pragma once

#include <cstdint>

#include "core/device/device.h"
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

  double flops() const { return 2.0 * static_cast<double>(batch * m) * static_cast<double>(n * k); }
};

// Where its operands begin, all of one dtype on one device.
struct StridedOperands {
  Device device;
  DType dtype;
  const void* a;
  const void* b;
  void* y;
};

// Libraries read layouts off strides, also those of dimensions of size 1. Such strides become those of a dense matrix: for a and
// b one that lies by rows or by columns, as the other stride says; for y one that lies by rows.
StridedProduct regular(StridedProduct product);

}  // namespace tessera
