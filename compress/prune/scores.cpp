#include "compress/prune/scores.h"

#include <algorithm>
#include <cmath>

#include "core/rng.h"
#include "core/support/error.h"

namespace tessera {
namespace {

std::span<const double> elements_of(const Tensor& sum) { return {sum.data<double>(), static_cast<std::size_t>(sum.numel())}; }

Tensor random_scores(const PrunedWeight& weight, std::uint64_t seed) {
  Tensor scores = Tensor::empty(weight.parameter->value().shape());
  fill_uniform(scores, RngStream(seed, weight.path, "prune.random"), 0, 1);
  return scores;
}

// Copies to f64 on the CPU.
Tensor on_host(const Tensor& tensor) { return tensor.to(Device::cpu()).to(DType::f64).contiguous(); }

void add_squares(const Parameter& parameter, const Tensor& sum) {
  if (!parameter.grad().defined()) return;
  const Tensor gradient = on_host(parameter.grad()), value = on_host(parameter.value());
  for (std::int64_t i = 0; i < sum.numel(); ++i) {
    const double product = gradient.data<double>()[i] * value.data<double>()[i];
    sum.data<double>()[i] += product * product;
  }
}

std::vector<Tensor> taylor_scores(std::span<const PrunedWeight> weights, const ScoreSources& sources) {
  std::vector<Tensor> sums;
  for (const PrunedWeight& weight : weights) sums.push_back(Tensor::zeros(weight.parameter->value().shape(), DType::f64));
  std::int64_t batches = 0;
  sources.gradients(sources.first, sources.batches, [&] {
    for (std::size_t i = 0; i < weights.size(); ++i) add_squares(*weights[i].parameter, sums[i]);
    ++batches;
  });
  TESSERA_CHECK(batches > 0, NumericError, "score taylor: the gradients of all ", sources.batches, " batches hold NaN or Inf");
  double largest = 0;
  for (const Tensor& sum : sums) largest = std::max(largest, *std::max_element(elements_of(sum).begin(), elements_of(sum).end()));
  const double scale = largest > 0 ? 1 / largest : 1;  // squares of small gradients would underflow in f32
  std::vector<Tensor> scores;
  for (const Tensor& sum : sums) {
    Tensor share = Tensor::empty(sum.shape());
    std::ranges::transform(elements_of(sum), share.data<float>(), [&](double each) { return static_cast<float>(each * scale); });
    scores.push_back(std::move(share));
  }
  return scores;
}

std::vector<Tensor> unmasked_scores(const std::string& score, std::span<const PrunedWeight> weights,
                                    const ScoreSources& sources) {
  if (score == "taylor") return taylor_scores(weights, sources);
  std::vector<Tensor> all;
  for (const PrunedWeight& weight : weights) {
    all.push_back(score == "random" ? random_scores(weight, sources.seed) : magnitudes(weight.parameter->value()));
  }
  return all;
}

}  // namespace

Tensor magnitudes(const Tensor& weight) {
  Tensor scores = weight.to(Device::cpu()).to(DType::f32).contiguous().clone();
  float* const values = scores.data<float>();
  for (std::int64_t i = 0; i < scores.numel(); ++i) values[i] = std::abs(values[i]);
  return scores;
}

std::vector<Tensor> scores_of(const std::string& score, std::span<const PrunedWeight> weights, const ScoreSources& sources) {
  const std::vector<Tensor> all = unmasked_scores(score, weights, sources);
  for (std::size_t k = 0; k < all.size(); ++k) {
    if (!weights[k].parameter->mask().defined()) continue;
    const Tensor mask = weights[k].parameter->mask().to(Device::cpu()).contiguous();
    const std::uint8_t* const kept = mask.data<std::uint8_t>();
    float* const values = all[k].data<float>();
    for (std::int64_t i = 0; i < mask.numel(); ++i) values[i] = kept[i] != 0 ? values[i] : -1.0F;
  }
  return all;
}

}  // namespace tessera
