// Which keys the queries of each head see in sparse attention: all that are near, and random ones farther away, as in the sparse
// Transformer of Gale et al., "Sparse GPU kernels for deep learning", 2020.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "core/rng.h"

namespace tessera {

namespace cpu::attention {
struct ElementTiles;
}  // namespace cpu::attention

struct AttentionPatternOptions {
  std::int64_t positions = 0, heads = 0;  // most positions of a sequence; heads of queries
  std::int64_t band = 0;  // keys less than this many positions away are seen; 1 or more: a query sees itself
  double density = 0;  // of the pairs beside the band: the share that is seen
  std::int64_t block = 1;  // what is kept as a whole: single pairs, or blocks of 16 x 16 or 32 x 32 of them
  bool causal = false;  // keys behind a query are neither seen nor counted
  RngStream stream = {};
};

// Immutable; sequences that are shorter have its leading part. A unit is a position, or a block of positions. With blocks the
// band is of whole ones: a block is of the band where any of its pairs is.
//
// Outside the band each pair of units is kept with probability min(1, c / |o|), where o = key - query is its diagonal's offset;
// with n units that diagonal has n - |o| pairs. Every head keeps exactly density times the number of pairs outside the band,
// rounded to a whole number, and c follows from that. Each diagonal keeps its expected number, rounded up or down by one random
// number for each head so that the numbers add up. The kept pairs of a diagonal are drawn uniformly.
class AttentionPattern {
 public:
  static constexpr std::int64_t kMostListed = std::int64_t{1} << 28;  // rows and kept pairs in the list of all heads

  // Throws ConfigError unless there are 1 or more positions, heads and band, 0 <= density <= 1, block is 1, 16 or 32, units fit
  // into 16 bits, and the list gets at most kMostListed entries.
  static void check(const AttentionPatternOptions& options);
  explicit AttentionPattern(const AttentionPatternOptions& options);  // throws what check() does
  ~AttentionPattern();
  AttentionPattern(const AttentionPattern&) = delete;
  AttentionPattern& operator=(const AttentionPattern&) = delete;

  const AttentionPatternOptions& options() const noexcept { return options_; }
  std::int64_t units() const noexcept { return units_; }
  std::int64_t kept() const noexcept { return kept_; }  // pairs of units beside the band, in one head

  // Beside the band: the units of keys that the queries of a unit see, ascending. One list holds those of all heads and units;
  // its row head * units() + unit is [offsets[row], offsets[row + 1]).
  std::span<const std::uint16_t> row(std::int64_t head, std::int64_t unit) const {
    const std::int64_t at = head * units_ + unit;
    return std::span(keys_).subspan(
        static_cast<std::size_t>(offsets_[static_cast<std::size_t>(at)]),
        static_cast<std::size_t>(offsets_[static_cast<std::size_t>(at + 1)] - offsets_[static_cast<std::size_t>(at)]));
  }
  std::span<const std::int64_t> offsets() const noexcept { return offsets_; }
  std::span<const std::uint16_t> keys() const noexcept { return keys_; }

  bool sees_beside_band(std::int64_t head, std::int64_t query, std::int64_t key) const;
  std::int64_t bytes() const;  // of the list, and of what is made of it so far
  // Pairs of positions beside the band, of all heads, for the last `queries` of `keys` positions; attention_pairs() has those of
  // the band too.
  std::int64_t count(std::int64_t queries, std::int64_t keys) const;

  // For the CPU's kernels, made when they are first asked for; of single pairs only.
  const cpu::attention::ElementTiles& tiles() const;

  // For a GPU's kernels, likewise, and made anew where another device asks. The first two are the list above; the others have,
  // for each head and unit of keys, the units of queries that see it. Units are two bytes each.
  struct OnDevice {
    Tensor offsets, keys;
    Tensor key_offsets, queries;
  };
  const OnDevice& on(Device device) const;

 private:
  void draw(std::int64_t head, double scale, std::span<const std::int64_t> diagonals);

  AttentionPatternOptions options_;
  std::int64_t units_ = 0, kept_ = 0;
  std::vector<std::int64_t> offsets_;
  std::vector<std::uint16_t> keys_;
  mutable std::mutex lock_;
  mutable std::unique_ptr<cpu::attention::ElementTiles> tiles_;
  mutable std::unique_ptr<OnDevice> on_device_;
};

using AttentionPatternPtr = std::shared_ptr<const AttentionPattern>;

}  // namespace tessera
