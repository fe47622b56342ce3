#include "tests/compress/patterns/masks.h"

#include <cmath>
#include <numeric>

#include "core/rng.h"

namespace tessera::testing {

Tensor random_scores(const Shape& shape, std::uint64_t seed) {
  Tensor scores = Tensor::empty(shape);
  fill_uniform(scores, RngStream(seed, "test", "scores"), 0.01, 1);
  return scores;
}

std::vector<Tensor> random_scores(const std::vector<Shape>& shapes, std::uint64_t seed) {
  std::vector<Tensor> all;
  for (const Shape& shape : shapes) all.push_back(random_scores(shape, seed + 100 * all.size()));
  return all;
}

std::int64_t ones(const Tensor& mask) {
  const Bits bits = mask.to_vector<std::uint8_t>();
  return std::accumulate(bits.begin(), bits.end(), std::int64_t{0});
}

std::int64_t ones(const Masks& masks) {
  std::int64_t sum = 0;
  for (const Tensor& mask : masks) sum += ones(mask);
  return sum;
}

std::int64_t size_of(std::span<const Tensor> tensors) {
  std::int64_t sum = 0;
  for (const Tensor& each : tensors) sum += each.numel();
  return sum;
}

double score_of(const Tensor& scores, const Tensor& mask) {
  double sum = 0;
  for (std::int64_t i = 0; i < scores.numel(); ++i) sum += mask.data<std::uint8_t>()[i] * scores.data<float>()[i];
  return sum;
}

double score_of(const std::vector<Tensor>& scores, const Masks& masks) {
  double sum = 0;
  for (std::size_t i = 0; i < scores.size(); ++i) sum += score_of(scores[i], masks[i]);
  return sum;
}

std::int64_t share(double density, std::int64_t total) { return std::llround(density * static_cast<double>(total)); }

}  // namespace tessera::testing
