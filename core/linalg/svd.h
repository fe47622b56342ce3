// Thin singular value decomposition of a dense matrix, in double: by Eigen's divide and conquer, or cuSOLVER.
#pragma once

#include "core/tensor.h"

namespace tessera::linalg {

struct Svd {
  Tensor u;  // [m, k], orthonormal columns
  Tensor s;  // [k], descending, non-negative
  Tensor v;  // [n, k], orthonormal columns
};

// a [m, n] f32 or f64 -> a = u diag(s) v', k = min(m, n), all in a's dtype. The largest entry of each column of u is positive, so
// that equal inputs give equal factors on one device. On a GPU it waits for the device, so it must not be called inside a step.
// No gradient. Throws ShapeError, DTypeError, NumericError on NaN or Inf, and OutOfMemoryError where its work does not fit
// beside what is in use.
Svd svd(const Tensor& a);

}  // namespace tessera::linalg

// a [m, n], f32 or f64.
namespace tessera::cpu { linalg::Svd svd_of(const Tensor& a); }
namespace tessera::cuda { linalg::Svd svd_of(const Tensor& a); }
