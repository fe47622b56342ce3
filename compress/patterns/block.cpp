#include "compress/patterns/block.h"

#include <algorithm>

#include "compress/patterns/units.h"
#include "core/support/error.h"

namespace tessera {
namespace {

// Adds the blocks of one weight, except those that are pruned entirely.
void add_blocks(std::span<const Tensor> scores, std::size_t weight, const Extent& block, std::span<const std::int64_t> outputs,
                std::vector<Unit>& units) {
  const WeightMatrix matrix = matrix_of(scores[weight].shape());
  for (std::int64_t first = 0; first < matrix.outputs; first += block.h) {
    const std::int64_t rows = std::min(block.h, matrix.outputs - first);
    const std::span<const std::int64_t> own = outputs.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(rows));
    for (std::int64_t tap = 0; tap < matrix.positions(); tap += matrix.inputs) {
      for (std::int64_t begin = 0; begin < matrix.inputs; begin += block.w) {
        const std::int64_t end = std::min(begin + block.w, matrix.inputs);
        const Unit unit = scored({.weight = weight, .outputs = own, .begin = tap + begin, .end = tap + end}, scores);
        if (unit.present > 0) units.push_back(unit);
      }
    }
  }
}

}  // namespace

std::string BlockPattern::why_not(const Shape& weight) const {
  if (weight.rank() < 2) return "is no matrix";
  const WeightMatrix matrix = matrix_of(weight);
  if (matrix.outputs < block_.h) return str("has ", matrix.outputs, " outputs; a block takes ", block_.h);
  if (matrix.inputs < block_.w) return str("has ", matrix.inputs, " inputs; a block takes ", block_.w);
  return "";
}

bool BlockPattern::keeps_all(std::span<const Shape> weights) const {
  if (weights.size() != 1) return false;
  const WeightMatrix matrix = matrix_of(weights.front());
  return matrix.outputs <= block_.h && matrix.positions() <= block_.w;
}

void BlockPattern::choose(std::span<const Tensor> scores, std::int64_t kept, std::span<const Tensor> masks) const {
  if (kept == 0) return;
  const std::vector<std::int64_t> outputs = all_outputs(scores);
  std::vector<Unit> units;
  for (std::size_t i = 0; i < scores.size(); ++i) add_blocks(scores, i, block_, outputs, units);
  const auto best = std::ranges::max_element(units, {}, &Unit::score);
  best->must = true;
  keep_best(std::move(units), kept, scores, masks);
}

}  // namespace tessera
