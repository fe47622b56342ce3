// The second phase of a pass: the core convolution from the narrow image in shared memory.
#pragma once

#include "core/cuda/tucker_conv/chain_tile.h"

namespace tessera::cuda {

// Where the window of output m begins. Outputs beyond the tile compute the first one again, and are dropped.
template <class Math, class Block>
TESSERA_INLINE int window_offset(const ChainTile<Math, Block>& c, int m) {
  if (m >= c.outputs()) return 0;
  return (m / c.shape.tile_w * c.rows.stride * c.window_w + m % c.shape.tile_w * c.columns.stride) * c.at.pitch_in;
}

template <class Math, class Block>
TESSERA_INLINE void store_narrow_out(const ChainTile<Math, Block>& c, int thread, const typename Math::State& state, int m0,
                                     int n0) {
  using T = typename Math::Storage;
  TESSERA_UNROLL
  for (int i = 0; i < Math::kTileRows; ++i) {
    const int m = m0 + Math::row(thread, i);
    if (m >= c.outputs()) continue;
    const std::int64_t pixel = c.pixel_out(m);
    TESSERA_UNROLL
    for (int j = 0; j < Math::kTileColumns; ++j) {
      const int n = n0 + Math::column(thread, j);
      const float sum = Math::value(state, i, j);
      if (!c.shape.has_out) {
        c.store_y(pixel, n, sum);
      } else if (n < round_up(c.shape.narrow_out, kChannelUnit)) {
        const T value = narrow<T>(n < c.shape.narrow_out ? sum : 0.0F);
        c.narrow_out()[m * c.at.pitch_out + n] = value;
        if (c.args.narrow_out != nullptr && pixel >= 0 && n < c.shape.narrow_out) {
          c.args.narrow_out[pixel * c.shape.narrow_out + n] = value;
        }
      }
    }
  }
}

// A slice is some channels of one tap. Without taps, as a class of a transposed core may be, all sums are zero.
template <class Math, class Block>
TESSERA_INLINE void convolve_core(ChainTile<Math, Block>& c) {
  using State = typename Math::State;
  const int slices_a_tap = ceil_div(c.shape.narrow_in, kSlice);
  const int slices = c.rows.taps * c.columns.taps * slices_a_tap;
  for (int m0 = 0; m0 < c.outputs(); m0 += Math::kShape.rows) {
    for (int n0 = 0; n0 < c.shape.narrow_out; n0 += Math::kShape.columns) {
      c.start([&](int row) { return window_offset(c, m0 + row); });
      const auto load = [&](int thread, int slice, int buffer) {
        const int a = slice / slices_a_tap / c.columns.taps;
        const int b = slice / slices_a_tap % c.columns.taps;
        const int tap = (c.rows.tap_begin + a * c.rows.tap_step) * c.shape.columns.core.kernel + c.columns.tap_begin +
                        b * c.columns.tap_step;
        c.load_weights(thread, buffer, c.args.core + std::int64_t{tap} * c.shape.narrow_in,
                       std::int64_t{c.shape.taps()} * c.shape.narrow_in, n0, c.shape.narrow_out,
                       slice % slices_a_tap * kSlice, c.shape.narrow_in, c.args.vector_core);
      };
      pipelined(c.block, slices, load, [&](int thread, State& state, int slice, int buffer) {
        const int begin = slice % slices_a_tap * kSlice;
        const int tap = slice / slices_a_tap;
        const int offset = (tap / c.columns.taps * c.window_w + tap % c.columns.taps) * c.at.pitch_in + begin;
        Math::multiply(thread, state, c.narrow_in() + offset, c.right(buffer), c.at.pitch_right,
                       c.depth(c.shape.narrow_in, begin));
      });
      c.block.each([&](int thread, State& state) { store_narrow_out(c, thread, state, m0, n0); });
    }
  }
}

}  // namespace tessera::cuda
