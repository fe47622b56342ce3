// Which token follows, by a network's scores.
#pragma once

#include <cstdint>
#include <span>

namespace tessera {

// The filters apply in this order: temperature, top_k, top_p.
struct SamplingOptions {
  double temperature = 1;  // scores are divided by it; 0: the token with the greatest score, of equal ones the first
  std::int64_t top_k = 0;  // only the k likeliest tokens, of equal ones the first; 0: all
  double top_p = 1;  // only the fewest likeliest tokens whose probabilities sum to top_p (Holtzman et al., 2020); 1: all
};

// Throws ConfigError unless temperature >= 0, top_k >= 0 and 0 < top_p <= 1.
void check(const SamplingOptions& options);

// The token that `draw`, in [0, 1), falls on among softmax(scores / temperature) of the tokens that are left. Throws what check()
// throws, NumericError where a score is NaN or +Inf, or all are -Inf.
std::int64_t sample_token(std::span<const float> scores, const SamplingOptions& options, double draw);

}  // namespace tessera
