// Walks over [rows, channels] data: pieces of rows that stay in cache, blocks of 2 vectors and 1 vector of channels within them,
// and single elements for the channels that are left.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/cpu/channel_blocks.h"
#include "core/cpu/parallel.h"

namespace tessera::cpu {

// Calls body.operator()<Block>(first channel) until `channels` are covered. T is what is computed in.
template <class T, class Body>
[[gnu::always_inline]] inline void for_each_channel_block(std::int64_t channels, Body&& body) {
  constexpr int kLanes = 32 / sizeof(T);
  std::int64_t c = 0;
  for (; c + 2 * kLanes <= channels; c += 2 * kLanes) body.template operator()<ChannelBlock<T, kLanes, 2>>(c);
  for (; c + kLanes <= channels; c += kLanes) body.template operator()<ChannelBlock<T, kLanes, 1>>(c);
  for (; c < channels; ++c) body.template operator()<ChannelBlock<T, 1, 1>>(c);
}

// Prefetches the piece behind the one that blocks walk over, line by line in that piece's own order. A walk over 16 of many
// channels meets a line here and there, and no processor foresees the next ones.
template <class Block>
class PieceBehind {
 public:
  // Of a walk over rows [begin, end), channels [c, c + Block::kChannels): its share of what lies behind.
  PieceBehind(std::int64_t begin, std::int64_t end, std::int64_t channels, std::int64_t c)
      : at_(end * channels + c * (end - begin)) {}

  // Once for each row of the walk. Behind the last piece there may be nothing: asking for it is harmless.
  template <class... T>
  [[gnu::always_inline]] void ask(const T*... data) {
    (__builtin_prefetch(data + at_), ...);
    at_ += Block::kChannels;
  }

 private:
  std::int64_t at_;
};

// Rows of a piece that stays in the first-level cache while several channel blocks walk over it.
inline std::int64_t rows_per_piece(std::int64_t channels) {
  return std::clamp<std::int64_t>(4096 / std::max<std::int64_t>(channels, 1), 8, 256);
}

// The same for a walk that keeps no sums: many channels are walked row by row, as they lie in memory. The values of a block that
// are the same for all rows are then loaded again for each row, which costs less than memory that is read in steps.
inline std::int64_t rows_per_mapped_piece(std::int64_t channels) { return channels < 64 ? rows_per_piece(channels) : 1; }

// Calls body(first, last) for pieces of [begin, end).
template <class Body>
[[gnu::always_inline]] inline void for_each_piece_of(std::int64_t begin, std::int64_t end, std::int64_t step, const Body& body) {
  for (std::int64_t at = begin; at < end; at += step) body(at, std::min(at + step, end));
}

// Cuts rows [begin, end) into pieces of a fixed size, so that the pieces stay in cache between two walks.
template <class Body>
void for_each_piece(std::int64_t begin, std::int64_t end, std::int64_t channels, Body&& body) {
  for_each_piece_of(begin, end, rows_per_piece(channels), body);
}

}  // namespace tessera::cpu
