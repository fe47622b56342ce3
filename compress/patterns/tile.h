// Tiles (Guo et al., SC 2020): whole outputs go; the outputs that are left are grouped in their order, `group` of them a tile;
// and in each tile whole positions go. A position is an input of a tap, for all outputs of the tile. What is left of a tile is a
// dense matrix.
#pragma once

#include "compress/patterns/pattern.h"

namespace tessera {

// Outputs and positions of tiles are ranked by their L2 norms divided by their lengths, across all weights of the budget. With s
// the asked sparsity, outputs hold sqrt(1 - s) of the elements or just above; tiles' positions then do the rest. Where no more
// than `kept` elements score above 0, no output goes: what is a set of tiles already stays as it is. Where some scores are gone,
// tiles are those of the pruning before, narrower where outputs go now.
class TilePattern final : public Pattern {
 public:
  static constexpr std::string_view kName = "tile";
  // `beside_elements`: where some scores are gone there may be single elements beside the tiles of the pruning before. Tiles are
  // then of outputs that hold nearly the same positions, and have only positions that all of their outputs hold, so that they are
  // full; a pruning may keep less than is asked.
  explicit TilePattern(std::int64_t group, bool beside_elements = false) : group_(group), beside_elements_(beside_elements) {}

  std::string_view name() const override { return kName; }
  std::string why_not(const Shape& weight) const override;

 protected:
  void choose(std::span<const Tensor> scores, std::int64_t kept, std::span<const Tensor> masks) const override;

 private:
  std::int64_t group_;
  bool beside_elements_;
};

}  // namespace tessera
