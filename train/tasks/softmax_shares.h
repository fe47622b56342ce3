// Probabilities of a row of scores, in double.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

namespace tessera {

// softmax(scores), of at least one; NaN where one is NaN or +Inf.
inline std::vector<double> softmax_shares(std::span<const float> scores) {
  const double greatest = *std::max_element(scores.begin(), scores.end());
  std::vector<double> shares;
  double sum = 0;
  for (const float score : scores) sum += shares.emplace_back(std::exp(static_cast<double>(score) - greatest));
  for (double& share : shares) share /= sum;
  return shares;
}

}  // namespace tessera
