// How far results are from what they should be.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/tensor.h"

namespace tessera {

// Largest difference as a share of the largest expected magnitude, which zeros among the results do not blow up. Infinite where
// a result or what is expected of it is NaN or Inf, or where the sizes differ: a NaN is to be compared by itself. Where all that
// is expected is 0, any difference is beyond every tolerance.
inline double relative_error(const std::vector<double>& got, const std::vector<double>& want) {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  if (got.size() != want.size()) return kInfinite;
  double difference = 0;
  double largest = 1e-30;
  for (std::size_t i = 0; i < want.size(); ++i) {
    if (!std::isfinite(got[i]) || !std::isfinite(want[i])) return kInfinite;
    difference = std::max(difference, std::abs(got[i] - want[i]));
    largest = std::max(largest, std::abs(want[i]));
  }
  return difference / largest;
}

inline double relative_error(const Tensor& got, const Tensor& want) {
  if (got.shape() != want.shape()) return std::numeric_limits<double>::infinity();
  return relative_error(got.to(DType::f64).to_vector<double>(), want.to(DType::f64).to_vector<double>());
}

}  // namespace tessera
