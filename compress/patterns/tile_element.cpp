#include "compress/patterns/tile_element.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "compress/patterns/elements.h"
#include "compress/patterns/unstructured.h"

namespace tessera {

void TileElementPattern::choose(std::span<const Tensor> scores, std::int64_t kept, std::span<const Tensor> masks) const {
  std::int64_t total = 0;
  for (const Tensor& each : scores) total += each.numel();
  const std::int64_t single = std::llround(extra_ * static_cast<double>(total));
  const std::vector<Tensor> tiles = tiles_.project(scores, std::max<std::int64_t>(0, kept - single));
  std::vector<Tensor> others;  // scores, with the elements of tiles set to -1
  std::int64_t left = kept;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    others.push_back(scores[i].clone());
    for (std::int64_t k = 0; k < others[i].numel(); ++k) {
      if (bits(tiles[i])[static_cast<std::size_t>(k)] == 0) continue;
      others[i].data<float>()[k] = -1;
      --left;
    }
  }
  const std::vector<Tensor> elements_too = UnstructuredPattern().project(others, left);
  for (std::size_t i = 0; i < masks.size(); ++i) {
    std::ranges::transform(bits(tiles[i]), bits(elements_too[i]), bits(masks[i]).begin(), std::bit_or<std::uint8_t>());
  }
}

}  // namespace tessera
