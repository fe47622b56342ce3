// The last phase of a pass: from the narrow image after the core, in shared memory, to the wide one.
#pragma once

#include "core/cuda/tucker_conv/chain_tile.h"

namespace tessera::cuda {

template <class Math, class Block>
TESSERA_INLINE void widen_image(ChainTile<Math, Block>& c) {
  using State = typename Math::State;
  for (int m0 = 0; m0 < c.outputs(); m0 += Math::kShape.rows) {
    for (int n0 = 0; n0 < c.shape.wide_out; n0 += Math::kShape.columns) {
      c.start([&](int row) { return m0 + row < c.outputs() ? (m0 + row) * c.at.pitch_out : 0; });
      const auto load = [&](int thread, int slice, int buffer) {
        c.load_weights(thread, buffer, c.args.out_factor, c.shape.narrow_out, n0, c.shape.wide_out, slice * kSlice,
                       c.shape.narrow_out, c.args.vector_out);
      };
      pipelined(c.block, ceil_div(c.shape.narrow_out, kSlice), load, [&](int thread, State& state, int slice, int buffer) {
        Math::multiply(thread, state, c.narrow_out() + slice * kSlice, c.right(buffer), c.at.pitch_right,
                       c.depth(c.shape.narrow_out, slice * kSlice));
      });
      c.block.each([&](int thread, State& state) {
        TESSERA_UNROLL
        for (int i = 0; i < Math::kTileRows; ++i) {
          const std::int64_t pixel = c.pixel_out(m0 + Math::row(thread, i));
          TESSERA_UNROLL
          for (int j = 0; j < Math::kTileColumns; ++j) c.store_y(pixel, n0 + Math::column(thread, j), Math::value(state, i, j));
        }
      });
    }
  }
}

}  // namespace tessera::cuda
