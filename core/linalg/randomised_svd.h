// Randomised singular value decomposition (Halko, Martinsson & Tropp, SIAM Review 2011, algorithms 4.4 and 5.1).
#pragma once

#include <cstdint>

#include "core/linalg/svd.h"

namespace tessera::linalg {

struct RandomisedOptions {
  std::int64_t oversampling = 8;      // columns of the sketch beyond the rank, as far as the matrix has them
  std::int64_t power_iterations = 2;  // products with a a', orthonormalised after each half
  std::uint64_t seed = 0;
};

// The first `rank` singular values and vectors of a [m, n], f32 or f64, approximately. Products run in a's dtype on its device,
// orthonormalisation in double. More columns and iterations bring the error nearer to the best one of this rank, the more so the
// faster singular values fall. Equal seeds give equal factors on one device. Throws ShapeError on a rank outside of 1..min(m,
// n), NumericError on NaN or Inf.
Svd randomised_svd(const Tensor& a, std::int64_t rank, const RandomisedOptions& options = {});

}  // namespace tessera::linalg
