#include "core/cpu/attention/element_tiles.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/support/rounding.h"

namespace tessera::cpu::attention {

std::size_t ElementTiles::bytes() const {
  return runs.size() * sizeof(runs[0]) + keys.size() * sizeof(keys[0]) + counts.size() + lanes.size();
}

FarElements ElementTiles::tile(std::int64_t head, std::int64_t tile, std::int64_t first) const {
  const auto at = static_cast<std::size_t>(head * tiles + tile);
  return {runs[at + 1] - runs[at], keys.data() + runs[at], counts.data() + runs[at], lanes.data() + first};
}

ElementTiles element_tiles(std::span<const std::int64_t> offsets, std::span<const std::uint16_t> keys, std::int64_t heads,
                           std::int64_t positions) {
  ElementTiles all;
  all.tiles = ceil_div(positions, kQueries);
  all.runs.push_back(0);
  all.lanes.resize(keys.size());
  std::vector<std::int64_t> next(static_cast<std::size_t>(positions));
  for (std::int64_t tile = 0; tile < heads * all.tiles; ++tile) {
    const std::int64_t head = tile / all.tiles, first = tile % all.tiles * kQueries;
    const std::int64_t count = std::min(kQueries, positions - first);
    const std::span<const std::int64_t> rows =
        offsets.subspan(static_cast<std::size_t>(head * positions + first), static_cast<std::size_t>(count + 1));
    std::ranges::fill(next, 0);
    for (std::int64_t i = rows.front(); i < rows.back(); ++i) ++next[keys[static_cast<std::size_t>(i)]];
    std::int64_t at = rows.front();
    for (std::size_t key = 0; key < next.size(); ++key) {
      if (next[key] == 0) continue;
      all.keys.push_back(static_cast<std::uint16_t>(key));
      all.counts.push_back(static_cast<std::uint8_t>(next[key]));
      at += std::exchange(next[key], at);
    }
    for (std::int64_t lane = 0; lane < count; ++lane) {
      for (std::int64_t i = rows[static_cast<std::size_t>(lane)]; i < rows[static_cast<std::size_t>(lane + 1)]; ++i) {
        all.lanes[static_cast<std::size_t>(next[keys[static_cast<std::size_t>(i)]]++)] = static_cast<std::uint8_t>(lane);
      }
    }
    all.runs.push_back(static_cast<std::int64_t>(all.keys.size()));
  }
  return all;
}

FarElements ChosenElements::choose(const FarElements& from, std::int64_t begin, std::int64_t end, std::int64_t keys_end,
                                   const std::uint8_t* mask) {
  keys_.clear(), counts_.clear(), lanes_.clear();
  const std::uint8_t* lanes = from.lanes;
  for (std::int64_t run = 0; run < from.runs && from.keys[run] < keys_end; lanes += from.counts[run++]) {
    if (mask != nullptr && mask[from.keys[run]] == 0) continue;
    const std::size_t before = lanes_.size();
    std::copy_if(lanes, lanes + from.counts[run], std::back_inserter(lanes_),
                 [&](std::uint8_t lane) { return lane >= begin && lane < end; });
    if (lanes_.size() == before) continue;
    keys_.push_back(from.keys[run]);
    counts_.push_back(static_cast<std::uint8_t>(lanes_.size() - before));
  }
  return {static_cast<std::int64_t>(keys_.size()), keys_.data(), counts_.data(), lanes_.data()};
}

}  // namespace tessera::cpu::attention
