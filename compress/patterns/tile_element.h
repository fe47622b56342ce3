// Tiles and single elements (Guo et al., SC 2020): tiles with fewer elements than asked for, by a share of all, then the elements
// of the highest scores among what tiles leave, up to what is asked for. Where some scores are gone, tiles are full all the
// same: they are what is left of the tiles of the pruning before, at positions that all outputs of a tile hold. Single elements
// make up for what the tiles then lack.
#pragma once

#include "compress/patterns/tile.h"

namespace tessera {

class TileElementPattern final : public Pattern {
 public:
  static constexpr std::string_view kName = "tile_element";
  TileElementPattern(std::int64_t group, double extra) : tiles_(group, /*beside_elements=*/true), extra_(extra) {}

  std::string_view name() const override { return kName; }
  std::string why_not(const Shape& weight) const override { return tiles_.why_not(weight); }

 protected:
  void choose(std::span<const Tensor> scores, std::int64_t kept, std::span<const Tensor> masks) const override;

 private:
  TilePattern tiles_;
  double extra_;  // single elements, as a fraction of all
};

}  // namespace tessera
