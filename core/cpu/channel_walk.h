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
  // For a walk over rows [begin, end), channels [c, c + Block::kChannels). It prefetches its share of the piece behind.
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

// Cuts rows [begin, end) into pieces of a fixed size, so that the pieces stay in cache between two walks.
template <class Body>
void for_each_piece(std::int64_t begin, std::int64_t end, std::int64_t channels, Body&& body) {
  const std::int64_t step = rows_per_piece(channels);
  for (std::int64_t at = begin; at < end; at += step) body(at, std::min(at + step, end));
}

// Calls body.operator()<Block>(first row, last row, first channel) for parts of [rows, channels] data, in parallel, for a walk
// that keeps no sums. From 64 channels on the parts are single rows, as they lie in memory: to load a block's constants again for
// each row costs less than strided reads. C is what is computed in. The body captures by value: through references its pointers
// and constants would be loaded again after every store.
template <class C, class Body>
void map_channel_blocks(std::int64_t rows, std::int64_t channels, const Body& body) {
  const std::int64_t step = channels < 64 ? rows_per_piece(channels) : 1;
  parallel_rows(rows, channels, [=](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t first = begin; first < end; first += step) {
      const std::int64_t last = std::min(first + step, end);
      for_each_channel_block<C>(
          channels, [=]<class Block>(std::int64_t c)
                        __attribute__((always_inline)) { body.template operator()<Block>(first, last, c); });
    }
  });
}

}  // namespace tessera::cpu
