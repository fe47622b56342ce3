#include "compress/patterns/units.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace tessera {
namespace {

// Calls `body` for each element of the unit, with the element's index in the weight.
template <class Body>
void for_each_element(const Unit& unit, const Shape& weight, Body&& body) {
  const std::int64_t positions = matrix_of(weight).positions();
  for (const std::int64_t output : unit.outputs) {
    for (std::int64_t k = unit.begin; k < unit.end; ++k) body(static_cast<std::size_t>(output * positions + k));
  }
}

}  // namespace

Unit scored(Unit unit, std::span<const Tensor> scores) {
  const std::span<const float> from = elements(scores[unit.weight]);
  double squares = 0;
  for_each_element(unit, scores[unit.weight].shape(), [&](std::size_t i) {
    if (from[i] < 0) return;
    squares += static_cast<double>(from[i]) * from[i];
    ++unit.present;
  });
  const auto size = static_cast<double>(unit.outputs.size()) * static_cast<double>(unit.end - unit.begin);
  unit.score = std::sqrt(squares) / size;
  return unit;
}

std::vector<std::int64_t> all_outputs(std::span<const Tensor> scores) {
  std::int64_t most = 0;
  for (const Tensor& each : scores) most = std::max(most, matrix_of(each.shape()).outputs);
  std::vector<std::int64_t> outputs(static_cast<std::size_t>(most));
  std::iota(outputs.begin(), outputs.end(), std::int64_t{0});
  return outputs;
}

std::vector<Unit> output_units(std::span<const Tensor> scores, std::span<const std::int64_t> outputs) {
  std::vector<Unit> units;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    const WeightMatrix matrix = matrix_of(scores[i].shape());
    for (std::int64_t output = 0; output < matrix.outputs; ++output) {
      const std::span<const std::int64_t> one = outputs.subspan(static_cast<std::size_t>(output), 1);
      Unit unit = scored({.weight = i, .outputs = one, .end = matrix.positions()}, scores);
      if (unit.present > 0) units.push_back(unit);
    }
  }
  return units;
}

void sort_best_first(std::vector<Unit>& units) {
  std::ranges::stable_sort(units, [](const Unit& a, const Unit& b) { return a.must != b.must ? a.must : a.score > b.score; });
}

void keep_best(std::vector<Unit> units, std::int64_t kept, std::span<const Tensor> scores, std::span<const Tensor> masks) {
  sort_best_first(units);
  std::int64_t held = 0;
  for (const Unit& unit : units) {
    held += unit.present;
    if (held > kept && !unit.must) return;
    const std::span<const float> from = elements(scores[unit.weight]);
    const std::span<std::uint8_t> mask = bits(masks[unit.weight]);
    for_each_element(unit, masks[unit.weight].shape(), [&](std::size_t i) { mask[i] = from[i] < 0 ? 0 : 1; });
  }
}

}  // namespace tessera
