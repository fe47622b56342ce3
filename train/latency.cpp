#include "train/latency.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "core/autograd/var.h"
#include "core/rng.h"

namespace tessera {
namespace {

double time_once(Module& network, const Var& x) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  network(x, Context{});
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

double quantile(const std::vector<double>& sorted, double q) {
  const double at = q * static_cast<double>(sorted.size() - 1);
  const auto low = static_cast<std::size_t>(std::floor(at));
  const auto high = std::min(low + 1, sorted.size() - 1);
  return sorted[low] + (at - static_cast<double>(low)) * (sorted[high] - sorted[low]);
}

Timing summarise(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  return {quantile(samples, 0.5), quantile(samples, 0.1), quantile(samples, 0.9)};
}

}  // namespace

PairedTiming time_networks(std::span<Module* const> networks, const Shape& input, std::int64_t repeats) {
  constexpr int kWarmUp = 10;
  const NoGrad no_grad;
  const Tensor batch = Tensor::empty(input);
  fill_normal(batch, RngStream(0, "latency", "input"), 0.0, 1.0);
  const Var x(batch);
  for (int round = 0; round < kWarmUp; ++round) {
    for (Module* network : networks) time_once(*network, x);
  }
  std::vector<std::vector<double>> times(networks.size());
  for (std::int64_t round = 0; round < repeats; ++round) {
    for (std::size_t i = 0; i < networks.size(); ++i) times[i].push_back(time_once(*networks[i], x));
  }
  PairedTiming result;
  for (const std::vector<double>& samples : times) {
    std::vector<double> ratios(samples.size());
    for (std::size_t round = 0; round < samples.size(); ++round) ratios[round] = times[0][round] / samples[round];
    result.networks.push_back(summarise(samples));
    result.speedup.push_back(summarise(std::move(ratios)));
  }
  return result;
}

}  // namespace tessera
