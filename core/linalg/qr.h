// Thin QR factorisation of a dense matrix on the CPU, in double (Householder).
#pragma once

#include "core/tensor.h"

namespace tessera::linalg {

struct Qr {
  Tensor q;  // [m, k], orthonormal columns
  Tensor r;  // [k, n], upper triangular, diagonal >= 0
};

// a [m, n] f32 or f64 -> a = q r, k = min(m, n), in a's dtype. The signs of r's diagonal make the factors unique at full rank.
// No gradient. Throws ShapeError, DTypeError, and NumericError on NaN or Inf.
Qr qr(const Tensor& a);

}  // namespace tessera::linalg
