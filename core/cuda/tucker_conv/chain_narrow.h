// The first phase of a pass: the narrow image under a block's outputs, with its halo, to shared memory.
#pragma once

#include "core/cuda/tucker_conv/chain_tile.h"

namespace tessera::cuda {

template <class Math, class Block>
TESSERA_INLINE void store_narrow_in(const ChainTile<Math, Block>& c, int thread, const typename Math::State& state, int m0,
                                    int n0) {
  using T = typename Math::Storage;
  TESSERA_UNROLL
  for (int i = 0; i < Math::kTileRows; ++i) {
    const int r = m0 + Math::row(thread, i);
    if (r >= c.window()) continue;
    const std::int64_t pixel = c.pixel_in(r);
    const bool stored = c.args.narrow_in != nullptr && pixel >= 0 && c.owned(r);
    TESSERA_UNROLL
    for (int j = 0; j < Math::kTileColumns; ++j) {
      const int n = n0 + Math::column(thread, j);
      if (n >= round_up(c.shape.narrow_in, kChannelUnit)) continue;
      // Zeros in the padding, as there is no bias, and in channels that fill up a unit.
      const T value = narrow<T>(pixel >= 0 && n < c.shape.narrow_in ? Math::value(state, i, j) : 0.0F);
      c.narrow_in()[r * c.at.pitch_in + n] = value;
      if (stored && n < c.shape.narrow_in) c.args.narrow_in[pixel * c.shape.narrow_in + n] = value;
    }
  }
}

// From the wide image, whose channels are staged in slices.
template <class Math, class Block>
TESSERA_INLINE void narrow_image(ChainTile<Math, Block>& c) {
  using T = typename Math::Storage;
  using State = typename Math::State;
  for (int m0 = 0; m0 < c.window(); m0 += Math::kShape.rows) {
    for (int n0 = 0; n0 < c.shape.narrow_in; n0 += Math::kShape.columns) {
      c.start([&](int row) { return row * c.at.pitch_left; });
      const auto load = [&](int thread, int slice, int buffer) {
        load_rows(thread, kChainThreads, c.left(buffer), c.at.pitch_left, Math::kShape.rows, kSlice, slice * kSlice,
                  c.shape.wide_in, c.args.vector_x, c.args.x, [&](int row) -> const T* {
                    const std::int64_t pixel = c.pixel_in(m0 + row);
                    return pixel >= 0 ? c.args.x + pixel * c.shape.wide_in : nullptr;
                  });
        c.load_weights(thread, buffer, c.args.in_factor, c.shape.wide_in, n0, c.shape.narrow_in, slice * kSlice,
                       c.shape.wide_in, c.args.vector_in);
      };
      pipelined(c.block, ceil_div(c.shape.wide_in, kSlice), load, [&](int thread, State& state, int slice, int buffer) {
        Math::multiply(thread, state, c.left(buffer), c.right(buffer), c.at.pitch_right,
                       c.depth(c.shape.wide_in, slice * kSlice));
      });
      c.block.each([&](int thread, State& state) { store_narrow_in(c, thread, state, m0, n0); });
    }
  }
}

// Without an in factor; arrives with the first slice of the core.
template <class Math, class Block>
TESSERA_INLINE void copy_image(ChainTile<Math, Block>& c) {
  using T = typename Math::Storage;
  c.block.each([&](int thread, typename Math::State&) {
    load_rows(thread, kChainThreads, c.narrow_in(), c.at.pitch_in, c.window(), round_up(c.shape.narrow_in, kChannelUnit), 0,
              c.shape.narrow_in, c.args.vector_x, c.args.x, [&](int r) -> const T* {
                const std::int64_t pixel = c.pixel_in(r);
                return pixel >= 0 ? c.args.x + pixel * c.shape.narrow_in : nullptr;
              });
  });
}

}  // namespace tessera::cuda
