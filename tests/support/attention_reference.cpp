#include "tests/support/attention_reference.h"

#include <cmath>
#include <vector>

#include "core/rng.h"
#include "tests/support/reference.h"

namespace tessera::testing {

namespace {

constexpr std::uint64_t kStep = 5, kMicroStep = 2;

RngStream dropped() { return {11, "attention", "mask"}; }

}  // namespace

void DroppedProbabilities::add_to(AttentionOptions& options, Device device) {
  if (rate_ == 0) return;
  const auto [state, fresh] = states_.try_emplace(device.name(), device);
  if (fresh) state->second.set({.step = kStep, .micro_step = kMicroStep});
  options.dropout = rate_;
  options.stream = dropped();
  options.step_state = state->second.tensor();
}

ProbabilityFactor DroppedProbabilities::factor(std::int64_t keys) const {
  if (rate_ == 0) return {};
  return [rate = rate_, blocks = static_cast<std::uint64_t>((keys + 3) / 4)](std::int64_t row, std::int64_t key) {
    const std::uint64_t word = static_cast<std::uint64_t>(row) * 4 * blocks + static_cast<std::uint64_t>(key);
    return random_u32(dropped(), (kStep << 20) + kMicroStep, word) * 0x1p-32 < rate ? 0.0 : 1 / (1 - rate);
  };
}

Tensor attention_reference(std::span<const Tensor> in, const Sees& sees, const ProbabilityFactor& factor) {
  const Tensor &q = in[0], &k = in[1], &v = in[2];
  const std::int64_t queries = q.dim(1), heads = q.dim(2), width = q.dim(3), keys = k.dim(1), group = heads / k.dim(2);
  const Tensor y = Tensor::zeros(q.shape(), DType::f64);
  for_each_index({q.dim(0), heads, queries}, [&](const Index& index) {
    const std::int64_t b = index[0], h = index[1], i = index[2];
    std::vector<double> powers(static_cast<std::size_t>(keys), 0.0);
    double total = 0;
    for (std::int64_t j = 0; j < keys; ++j) {
      if (!sees(h, i + keys - queries, j) || (in.size() > 3 && element(in[3], {b, j}) == 0)) continue;
      double score = 0;
      for (std::int64_t c = 0; c < width; ++c) score += at(q, b, i, h, c) * at(k, b, j, h / group, c);
      total += powers[static_cast<std::size_t>(j)] = std::exp(score / std::sqrt(static_cast<double>(width)));
    }
    for (std::int64_t j = 0; total > 0 && j < keys; ++j) {
      const double kept = factor ? factor((b * heads + h) * queries + i, j) : 1;
      for (std::int64_t c = 0; c < width; ++c) {
        at(y, b, i, h, c) += kept * powers[static_cast<std::size_t>(j)] / total * at(v, b, j, h / group, c);
      }
    }
  });
  return y;
}

}  // namespace tessera::testing
