#include "compress/ranks/knapsack.h"

#include <cmath>
#include <cstdint>
#include <limits>

namespace tessera {
namespace {

constexpr std::size_t kSteps = 4000;
constexpr double kNever = std::numeric_limits<double>::infinity();

}  // namespace

std::optional<std::vector<std::size_t>> least_loss(std::span<const std::vector<LayerOption>> layers, double budget) {
  if (!(budget >= 0)) return std::nullopt;
  const double step = budget > 0 ? budget / kSteps : 1;
  // For each sum of steps: the least loss with the layers so far, and the option chosen for the last of them.
  std::vector<double> loss(kSteps + 1, kNever);
  loss[0] = 0;
  std::vector<std::vector<std::uint32_t>> chosen;
  for (const std::vector<LayerOption>& options : layers) {
    std::vector<double> next(kSteps + 1, kNever);
    std::vector<std::uint32_t>& option_at = chosen.emplace_back(kSteps + 1, 0);
    for (std::uint32_t i = 0; i < options.size(); ++i) {
      const double steps = std::ceil(options[i].cost / step * (1 - 1e-12));
      if (steps > static_cast<double>(kSteps)) continue;
      const auto taken = static_cast<std::size_t>(steps);
      for (std::size_t at = taken; at <= kSteps; ++at) {
        const double sum = loss[at - taken] + options[i].loss;
        if (sum >= next[at]) continue;
        next[at] = sum;
        option_at[at] = i;
      }
    }
    loss = std::move(next);
  }
  std::size_t at = 0;
  for (std::size_t i = 1; i <= kSteps; ++i) {
    if (loss[i] < loss[at]) at = i;
  }
  if (loss[at] == kNever) return std::nullopt;
  std::vector<std::size_t> result(layers.size());
  for (std::size_t i = layers.size(); i-- > 0;) {
    result[i] = chosen[i][at];
    at -= static_cast<std::size_t>(std::ceil(layers[i][result[i]].cost / step * (1 - 1e-12)));
  }
  return result;
}

}  // namespace tessera
