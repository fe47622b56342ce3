// Eigendecomposition of a symmetric matrix, in double: by Eigen's tridiagonal QR, or cuSOLVER's divide and conquer.
#pragma once

#include "core/tensor.h"

namespace tessera::linalg {

struct Eigh {
  Tensor values;   // [n], descending
  Tensor vectors;  // [n, n], orthonormal columns, column i belongs to values[i]
};

// a [n, n] f32 or f64, symmetric; only the lower triangle is read -> a = vectors diag(values) vectors', in a's dtype. The largest
// entry of each vector is positive. On a GPU it waits for the device, so it must not be called inside a step. No gradient.
// Throws ShapeError unless a is square, DTypeError, NumericError on NaN or Inf, OutOfMemoryError where its work does not fit
// beside what is in use.
Eigh eigh(const Tensor& a);

// Its values alone [n], descending, at a fraction of the cost. Throws what eigh throws.
Tensor eigvalsh(const Tensor& a);

}  // namespace tessera::linalg

// a [n, n], f32 or f64; the vectors are undefined unless asked for.
namespace tessera::cpu { linalg::Eigh eigh_of(const Tensor& a, bool vectors); }
namespace tessera::cuda { linalg::Eigh eigh_of(const Tensor& a, bool vectors); }
