// Single pairs of an attention pattern as the kernels walk them: tiles of queries, in each the keys that some of them see.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/cpu/attention/problem.h"

namespace tessera::cpu::attention {

struct ElementTiles {
  std::int64_t tiles = 0;  // of a head
  std::vector<std::int64_t> runs;  // [heads * tiles + 1]: where those of each tile begin
  std::vector<std::uint16_t> keys;
  std::vector<std::uint8_t> counts, lanes;

  std::size_t bytes() const;
  // first: the offset of the tile's first row.
  FarElements tile(std::int64_t head, std::int64_t tile, std::int64_t first) const;
};

// Keys of row (head, position), [offsets[row], offsets[row + 1]) of `keys`, ascending.
ElementTiles element_tiles(std::span<const std::int64_t> offsets, std::span<const std::uint16_t> keys, std::int64_t heads,
                           std::int64_t positions);

// A copy of the elements of some lanes and keys.
class ChosenElements {
 public:
  // Lanes of [begin, end), keys before `keys_end` that `mask` does not hide; null hides none.
  FarElements choose(const FarElements& from, std::int64_t begin, std::int64_t end, std::int64_t keys_end,
                     const std::uint8_t* mask);

 private:
  std::vector<std::uint16_t> keys_;
  std::vector<std::uint8_t> counts_, lanes_;
};

}  // namespace tessera::cpu::attention
