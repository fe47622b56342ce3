// Thin singular value decomposition of a dense matrix on the CPU, in double (Eigen's divide and conquer).
#pragma once

#include "core/tensor.h"

namespace tessera::linalg {

struct Svd {
  Tensor u;  // [m, k], orthonormal columns
  Tensor s;  // [k], descending, non-negative
  Tensor v;  // [n, k], orthonormal columns
};

// a [m, n] f32 or f64 -> a = u diag(s) v', k = min(m, n), all in a's dtype. The largest entry of each column of u is positive, so
// that equal inputs give equal factors. No gradient. Throws ShapeError, DTypeError, and NumericError on NaN or Inf.
Svd svd(const Tensor& a);

}  // namespace tessera::linalg
