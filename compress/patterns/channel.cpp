#include "compress/patterns/channel.h"

#include <algorithm>

#include "compress/patterns/units.h"

namespace tessera {

std::string ChannelPattern::why_not(const Shape& weight) const { return weight.rank() < 2 ? "is no matrix" : ""; }

bool ChannelPattern::keeps_all(std::span<const Shape> weights) const {
  return std::ranges::all_of(weights, [](const Shape& weight) { return matrix_of(weight).outputs == 1; });
}

void ChannelPattern::choose(std::span<const Tensor> scores, std::int64_t kept, std::span<const Tensor> masks) const {
  const std::vector<std::int64_t> outputs = all_outputs(scores);
  std::vector<Unit> units = output_units(scores, outputs);
  sort_best_first(units);
  double total = 0;
  for (const Tensor& each : scores) total += static_cast<double>(each.numel());
  std::vector<std::int64_t> left;  // how many of each weight's best outputs must still be kept
  for (const Tensor& each : scores) {
    const double least = kLeastShare * static_cast<double>(kept) / total * static_cast<double>(each.dim(0));
    left.push_back(std::max<std::int64_t>(1, static_cast<std::int64_t>(least)));
  }
  for (Unit& unit : units) unit.must = left[unit.weight]-- > 0;
  keep_best(std::move(units), kept, scores, masks);
}

}  // namespace tessera
