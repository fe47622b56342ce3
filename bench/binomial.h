// The confidence bound of a share that was counted in trials.
#pragma once

#include <cmath>
#include <cstdint>

namespace tessera::bench {

// P(binomial(n, p) <= k), 0 < p < 1.
inline double at_most(std::int64_t k, std::int64_t n, double p) {
  double sum = 0;
  const auto trials = static_cast<double>(n);
  for (std::int64_t i = 0; i <= k; ++i) {
    const auto hits = static_cast<double>(i);
    const double ways = std::lgamma(trials + 1) - std::lgamma(hits + 1) - std::lgamma(trials - hits + 1);
    sum += std::exp(ways + hits * std::log(p) + (trials - hits) * std::log1p(-p));
  }
  return sum;
}

// The upper end of the one-sided 95 % interval of C. Clopper and E. Pearson (Biometrika 26, 1934), to 1e-6; trials > 0.
inline double upper_bound(std::int64_t hits, std::int64_t trials) {
  double low = static_cast<double>(hits) / static_cast<double>(trials);
  double high = 1;
  while (high - low > 1e-6) {
    const double middle = (low + high) / 2;
    (at_most(hits, trials, middle) > 0.05 ? low : high) = middle;
  }
  return high;
}

}  // namespace tessera::bench
