#include "compress/patterns/tile.h"

#include <algorithm>
#include <cmath>

#include "compress/patterns/units.h"

namespace tessera {
namespace {

using Outputs = std::vector<std::int64_t>;

// Whether more elements have a score above 0 than can be kept.
bool prunes(std::span<const Tensor> scores, std::int64_t kept) {
  std::int64_t count = 0;
  for (const Tensor& each : scores) count += std::ranges::count_if(elements(each), [](float score) { return score > 0; });
  return count > kept;
}

// The kept outputs of each weight, in ascending order.
struct KeptOutputs {
  std::vector<Outputs> scored, zero;  // outputs without a score above 0 get separate tiles
};

KeptOutputs kept_outputs(std::span<const Tensor> scores, std::int64_t kept) {
  const Outputs all = all_outputs(scores);
  std::vector<Unit> units = output_units(scores, all);
  sort_best_first(units);
  double total = 0;
  for (const Tensor& each : scores) total += static_cast<double>(each.numel());
  const bool some_go = prunes(scores, kept);
  const double asked = std::sqrt(static_cast<double>(kept) * total);
  KeptOutputs outputs{.scored = std::vector<Outputs>(scores.size()), .zero = std::vector<Outputs>(scores.size())};
  double held = 0;
  std::int64_t present = 0;
  for (const Unit& unit : units) {
    if (some_go && held >= asked && present >= kept) break;
    held += static_cast<double>(unit.end);
    present += unit.present;
    (unit.score > 0 ? outputs.scored : outputs.zero)[unit.weight].push_back(unit.outputs.front());
  }
  for (std::vector<Outputs>* const each : {&outputs.scored, &outputs.zero}) {
    for (Outputs& own : *each) std::ranges::sort(own);
  }
  return outputs;
}

// Whether two outputs have pruned elements at the same positions.
bool alike(std::span<const float> scores, std::int64_t positions, std::int64_t a, std::int64_t b) {
  const auto size = static_cast<std::size_t>(positions);
  const std::span<const float> left = scores.subspan(static_cast<std::size_t>(a) * size, size);
  const std::span<const float> right = scores.subspan(static_cast<std::size_t>(b) * size, size);
  return std::ranges::equal(left, right, [](float x, float y) { return (x < 0) == (y < 0); });
}

// Groups outputs into tiles. Outputs of different tiles of an earlier pruning stay apart, so that each tile stays a full matrix.
// If no neighbours are alike, there were no tiles before.
std::vector<std::span<const std::int64_t>> tiles_of(const Outputs& outputs, std::int64_t group, const Tensor& scores) {
  const std::int64_t positions = matrix_of(scores.shape()).positions();
  const auto same = [&](std::int64_t a, std::int64_t b) { return alike(elements(scores), positions, a, b); };
  const bool no_tiles = std::ranges::adjacent_find(outputs, same) == outputs.end();
  std::vector<std::span<const std::int64_t>> tiles;
  std::span<const std::int64_t> left(outputs);
  while (!left.empty()) {
    const std::size_t most = std::min(static_cast<std::size_t>(group), left.size());
    std::size_t width = 1;
    while (width < most && (no_tiles || same(left[0], left[width]))) ++width;
    tiles.push_back(left.first(width));
    left = left.subspan(width);
  }
  return tiles;
}

// The positions that all outputs of a growing tile hold.
class Common {
 public:
  Common(std::span<const float> scores, std::int64_t positions, std::int64_t output)
      : scores_(scores), size_(static_cast<std::size_t>(positions)), held_(size_) {
    for (std::size_t k = 0; k < size_; ++k) held_[k] = holds(output, k);
  }
  // Adds an output if it lacks at most half as large a share of the common positions as of all positions. An output of another
  // tile lacks about the same share of both. One of this tile lacks only single elements of the outputs before it.
  bool take(std::int64_t output) {
    std::size_t own = 0, common = 0, lacking = 0;
    for (std::size_t k = 0; k < size_; ++k) {
      const bool has = holds(output, k);
      own += has ? 1 : 0;
      common += held_[k] ? 1 : 0;
      lacking += held_[k] && !has ? 1 : 0;
    }
    if (2 * lacking * size_ > common * (size_ - own)) return false;
    for (std::size_t k = 0; k < size_; ++k) held_[k] = held_[k] && holds(output, k);
    return true;
  }

 private:
  bool holds(std::int64_t output, std::size_t k) const { return scores_[static_cast<std::size_t>(output) * size_ + k] >= 0; }

  std::span<const float> scores_;
  std::size_t size_;
  std::vector<bool> held_;
};

// Like tiles_of, for weights that may have single elements next to the tiles.
std::vector<std::span<const std::int64_t>> nearly_tiles_of(const Outputs& outputs, std::int64_t group, const Tensor& scores) {
  const std::int64_t positions = matrix_of(scores.shape()).positions();
  std::vector<std::span<const std::int64_t>> tiles;
  std::span<const std::int64_t> left(outputs);
  while (!left.empty()) {
    Common common(elements(scores), positions, left[0]);
    const std::size_t most = std::min(static_cast<std::size_t>(group), left.size());
    std::size_t width = 1;
    while (width < most && common.take(left[width])) ++width;
    tiles.push_back(left.first(width));
    left = left.subspan(width);
  }
  return tiles;
}

// Adds the positions of one tile, except pruned ones. If tiles have to be full, a position must be there for all of its outputs.
void add_positions(std::span<const Tensor> scores, std::size_t weight, std::span<const std::int64_t> tile, bool full,
                   std::vector<Unit>& units) {
  const std::int64_t positions = matrix_of(scores[weight].shape()).positions();
  const auto least = full ? static_cast<std::int64_t>(tile.size()) : 1;
  for (std::int64_t k = 0; k < positions; ++k) {
    const Unit unit = scored({.weight = weight, .outputs = tile, .begin = k, .end = k + 1}, scores);
    if (unit.present >= least) units.push_back(unit);
  }
}

bool some_gone(const Tensor& scores) {
  return std::ranges::any_of(elements(scores), [](float score) { return score < 0; });
}

}  // namespace

std::string TilePattern::why_not(const Shape& weight) const { return weight.rank() < 2 ? "is no matrix" : ""; }

void TilePattern::choose(std::span<const Tensor> scores, std::int64_t kept, std::span<const Tensor> masks) const {
  const KeptOutputs outputs = kept_outputs(scores, kept);
  std::vector<Unit> units;
  for (const std::vector<Outputs>* const each : {&outputs.scored, &outputs.zero}) {
    for (std::size_t i = 0; i < scores.size(); ++i) {
      const bool full = beside_elements_ && some_gone(scores[i]);
      const auto tiles = full ? nearly_tiles_of((*each)[i], group_, scores[i]) : tiles_of((*each)[i], group_, scores[i]);
      for (const std::span<const std::int64_t> tile : tiles) {
        if (full && tile.size() == 1 && group_ > 1) continue;  // such an output holds only single elements
        add_positions(scores, i, tile, full, units);
      }
    }
  }
  keep_best(std::move(units), kept, scores, masks);
}

}  // namespace tessera
