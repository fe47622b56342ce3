// Order statistics of repeated measurements.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

namespace tessera {

struct Summary {
  double median = 0;
  double p10 = 0;
  double p90 = 0;
};

// Linear interpolation between order statistics, as numpy.quantile. `samples` must not be empty.
inline double quantile(std::vector<double> samples, double share) {
  std::sort(samples.begin(), samples.end());
  const double at = share * static_cast<double>(samples.size() - 1);
  const auto below = static_cast<std::size_t>(std::floor(at));
  const std::size_t above = std::min(below + 1, samples.size() - 1);
  return samples[below] + (at - std::floor(at)) * (samples[above] - samples[below]);
}

inline Summary summarise(const std::vector<double>& samples) {
  return {quantile(samples, 0.5), quantile(samples, 0.1), quantile(samples, 0.9)};
}

}  // namespace tessera
