#include "train/generate/sampling.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "core/support/error.h"

namespace tessera {
namespace {

// The index of the greatest score; the first of equal ones.
std::size_t likeliest(std::span<const float> scores) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::size_t best = 0;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    TESSERA_CHECK(scores[i] < kInfinity, NumericError, "generate: the network's score of token ", i, " is ", scores[i]);
    if (scores[i] > scores[best]) best = i;
  }
  TESSERA_CHECK(!scores.empty() && scores[best] > -kInfinity, NumericError, "generate: no token has a finite score");
  return best;
}

// The `count` likeliest tokens, likeliest first.
std::vector<std::size_t> ranked(std::span<const float> scores, std::size_t count) {
  std::vector<std::size_t> order(scores.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count), order.end(),
                    [&](std::size_t a, std::size_t b) { return scores[a] != scores[b] ? scores[a] > scores[b] : a < b; });
  order.resize(count);
  return order;
}

// The tokens that may be drawn: all in their order, or likeliest first if a filter needs the ranking.
std::vector<std::size_t> candidates(std::span<const float> scores, const SamplingOptions& options) {
  const bool all = options.top_k == 0 || static_cast<std::size_t>(options.top_k) >= scores.size();
  if (!all) return ranked(scores, static_cast<std::size_t>(options.top_k));
  if (options.top_p < 1) return ranked(scores, scores.size());
  std::vector<std::size_t> order(scores.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  return order;
}

}  // namespace

void check(const SamplingOptions& options) {
  TESSERA_CHECK(std::isfinite(options.temperature) && options.temperature >= 0, ConfigError, "temperature is ",
                options.temperature, "; must be 0 or more");
  TESSERA_CHECK(options.top_k >= 0, ConfigError, "top-k is ", options.top_k, "; must be 0, which is all tokens, or more");
  TESSERA_CHECK(options.top_p > 0 && options.top_p <= 1, ConfigError, "top-p is ", options.top_p,
                "; must be above 0 and at most 1");
}

std::int64_t sample_token(std::span<const float> scores, const SamplingOptions& options, double draw) {
  check(options);
  const std::size_t best = likeliest(scores);
  if (options.temperature == 0) return static_cast<std::int64_t>(best);
  std::vector<std::size_t> tokens = candidates(scores, options);
  std::vector<double> shares(tokens.size());
  double total = 0;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    shares[i] = std::exp((static_cast<double>(scores[tokens[i]]) - static_cast<double>(scores[best])) / options.temperature);
    total += shares[i];
  }
  if (options.top_p < 1) {
    const double enough = options.top_p * total;
    std::size_t kept = 0;
    total = 0;
    while (kept < shares.size() && total < enough) total += shares[kept++];
    tokens.resize(kept);
  }
  double left = draw * total;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    left -= shares[i];
    if (left < 0) return static_cast<std::int64_t>(tokens[i]);
  }
  // Rounding may leave a rest after the last token. The last token with a share above 0 takes it.
  std::size_t last = tokens.size() - 1;
  while (last > 0 && shares[last] == 0) --last;
  return static_cast<std::int64_t>(tokens[last]);
}

}  // namespace tessera
