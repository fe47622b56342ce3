// How far what one side of a comparison computed is from what another did.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/support/error.h"

namespace tessera::bench {

struct Difference {
  double distance = 0;  // the largest; infinite where either side has a NaN
  double largest = 0;  // magnitude of what is expected

  double relative() const { return distance > 0 && std::isfinite(distance) ? distance / largest : distance; }
};

// Throws InternalError where they are not as many.
template <class Expected, class Actual>
Difference difference_of(const std::vector<Expected>& expected, const std::vector<Actual>& actual) {
  TESSERA_CHECK(expected.size() == actual.size(), InternalError, "difference: ", expected.size(), " values and ", actual.size());
  Difference difference;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double distance = std::abs(static_cast<double>(expected[i]) - static_cast<double>(actual[i]));
    difference.distance = std::isnan(distance) ? INFINITY : std::max(difference.distance, distance);
    difference.largest = std::max(difference.largest, std::abs(static_cast<double>(expected[i])));
  }
  return difference;
}

}  // namespace tessera::bench
