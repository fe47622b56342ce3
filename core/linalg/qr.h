// Thin QR factorisation of a dense matrix, in double (Householder): by Eigen or cuSOLVER.
#pragma once

#include "core/tensor.h"

namespace tessera::linalg {

struct Qr {
  Tensor q;  // [m, k], orthonormal columns
  Tensor r;  // [k, n], upper triangular, diagonal >= 0
};

// a [m, n] f32 or f64 -> a = q r, k = min(m, n), in a's dtype. The signs of r's diagonal make the factors unique at full rank.
// On a GPU it waits for the device, so it must not be called inside a step. No gradient. Throws ShapeError, DTypeError, and
// NumericError on NaN or Inf.
Qr qr(const Tensor& a);

}  // namespace tessera::linalg

// a [m, n], f32 or f64.
namespace tessera::cpu { linalg::Qr qr_of(const Tensor& a); }
namespace tessera::cuda { linalg::Qr qr_of(const Tensor& a); }
