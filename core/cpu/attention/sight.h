// Which keys the lanes of a tile see, and the tiles of keys that they have to go through. Included like kernels.h.
#pragma once

#include <cstdint>
#include <cstring>

#include "core/cpu/attention/arrays.h"
#include "core/cpu/attention/problem.h"
#include "core/cpu/vectors.h"

namespace tessera::cpu::attention {
namespace {

// The keys of a tile, and the lanes that may see some of them: whole vectors.
struct KeyTile {
  std::int64_t first, count;
  std::int64_t lane, lanes;
  bool far = false;  // beside the band: only a mask of keys may hide some

  std::int64_t end() const { return first + count; }
};

// Which lanes of a tile of queries see which keys.
template <int W>
class Sight {
 public:
  Sight(const AttentionForm& form, const Queries& queries, const std::uint8_t* mask) : mask_(mask) {
    begin_ = all_to_ = form.keys;
    for (std::int64_t i = 0; i < kQueries; ++i) {
      const bool before = i < queries.begin, behind = i >= queries.end;
      const std::int64_t query = queries.first + lesser(greater(i, queries.begin), queries.end - 1);
      const std::int64_t first = form.first_key(query), end = greater(form.end_key(query), first);
      // Lanes that do not exist see nothing, and keep bounds that rise.
      first_[i] = static_cast<std::int32_t>(behind ? end : first);
      ends_[i] = static_cast<std::int32_t>(before ? first : end);
      begin_ = lesser(begin_, first);
      end_ = greater(end_, end);
      all_from_ = greater(all_from_, first);
      all_to_ = lesser(all_to_, end);
    }
  }

  std::int64_t begin() const { return begin_; }  // keys before it are seen by no lane, and those from end() on
  std::int64_t end() const { return end_; }
  // All lanes of the tile that exist.
  bool sees_all(const KeyTile& keys) const {
    if (!keys.far && (keys.first < all_from_ || keys.end() > all_to_)) return false;
    return seen_by_mask(keys.first, keys.end()) == keys.count;
  }
  bool sees_none(std::int64_t from, std::int64_t to) const { return seen_by_mask(from, to) == 0; }
  // The vectors of lanes [first, end) that may see a key of [from, to). Bounds rise from query to query, so that they are
  // neighbours.
  std::int64_t first_vector(std::int64_t from) const {
    std::int64_t v = 0;
    while (v < kQueries / W && ends_[v * W + W - 1] <= from) ++v;
    return v;
  }
  std::int64_t end_vector(std::int64_t to) const {
    std::int64_t v = kQueries / W;
    while (v > 0 && first_[(v - 1) * W] >= to) --v;
    return v;
  }
  // All bits set in the lanes that see key j of a tile.
  IntVec<W> lanes(const KeyTile& keys, std::int64_t j, std::int64_t lane) const {
    const std::int64_t key = keys.first + j;
    if (mask_ != nullptr && mask_[key] == 0) return IntVec<W>{};
    if (keys.far) return ~IntVec<W>{};
    const IntVec<W> at = IntVec<W>{} + static_cast<std::int32_t>(key);
    IntVec<W> first, last;
    std::memcpy(&first, first_ + lane, sizeof first);
    std::memcpy(&last, ends_ + lane, sizeof last);
    return (at >= first) & (at < last);
  }

 private:
  std::int64_t seen_by_mask(std::int64_t from, std::int64_t to) const {
    if (mask_ == nullptr) return to - from;
    std::int64_t seen = 0;
    for (std::int64_t j = from; j < to; ++j) seen += mask_[j] != 0;
    return seen;
  }

  const std::uint8_t* mask_;
  std::int32_t first_[kQueries], ends_[kQueries];
  std::int64_t begin_, end_ = 0, all_from_ = 0, all_to_;
};

// Calls body(KeyTile, whether all lanes see all of it) for the tiles of the band that some lane may see, in ascending order. They
// begin at multiples of kKeys, so that sums do not depend on what else a query sees.
template <int W, class Body>
void for_each_tile(const Sight<W>& sight, Body&& body) {
  for (std::int64_t first = sight.begin() / kKeys * kKeys; first < sight.end(); first += kKeys) {
    const std::int64_t end = lesser(first + kKeys, sight.end());
    const std::int64_t from = sight.first_vector(first), to = sight.end_vector(end);
    if (from >= to || sight.sees_none(first, end)) continue;
    const KeyTile keys{first, end - first, from * W, (to - from) * W};
    body(keys, sight.sees_all(keys));
  }
}

// The same for the blocks beside the band, of the first `keys` keys.
template <int W, class Body>
void for_each_far_block(const Sight<W>& sight, const FarBlocks& far, std::int64_t keys, Body&& body) {
  for (std::int64_t row = 0; row * far.side < kQueries && far.side > 0; ++row) {
    for (std::int64_t i = far.offsets[row]; i < far.offsets[row + 1]; ++i) {
      const std::int64_t first = far.keys[i] * far.side, end = lesser(first + far.side, keys);
      if (first >= end) break;
      if (sight.sees_none(first, end)) continue;
      const KeyTile block{first, end - first, row * far.side, far.side, true};
      body(block, sight.sees_all(block));
    }
  }
}

}  // namespace
}  // namespace tessera::cpu::attention
