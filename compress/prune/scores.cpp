#include "compress/prune/scores.h"

#include <cmath>

#include "core/rng.h"

namespace tessera {
namespace {

Tensor random_scores(const PrunedWeight& weight, std::uint64_t seed) {
  Tensor scores = Tensor::empty(weight.parameter->value().shape());
  fill_uniform(scores, RngStream(seed, weight.path, "prune.random"), 0, 1);
  return scores;
}

}  // namespace

Tensor magnitudes(const Tensor& weight) {
  Tensor scores = weight.to(Device::cpu()).to(DType::f32).contiguous().clone();
  float* const values = scores.data<float>();
  for (std::int64_t i = 0; i < scores.numel(); ++i) values[i] = std::abs(values[i]);
  return scores;
}

std::vector<Tensor> scores_of(const std::string& score, std::span<const PrunedWeight> weights, std::uint64_t seed) {
  std::vector<Tensor> all;
  for (const PrunedWeight& weight : weights) {
    Tensor scores = score == "random" ? random_scores(weight, seed) : magnitudes(weight.parameter->value());
    if (weight.parameter->mask().defined()) {
      const Tensor mask = weight.parameter->mask().to(Device::cpu()).contiguous();
      const std::uint8_t* const kept = mask.data<std::uint8_t>();
      float* const values = scores.data<float>();
      for (std::int64_t i = 0; i < scores.numel(); ++i) values[i] = kept[i] != 0 ? values[i] : -1.0F;
    }
    all.push_back(std::move(scores));
  }
  return all;
}

}  // namespace tessera
