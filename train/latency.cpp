#include "train/latency.h"

#include <chrono>

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
    result.speedup.push_back(summarise(ratios));
  }
  return result;
}

}  // namespace tessera
