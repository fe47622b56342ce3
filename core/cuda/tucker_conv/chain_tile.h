// One block's part of a pass of a fused Tucker-2 convolution: which pixels it owns, where they lie in its shared memory, and what
// the three phases (chain_narrow.h, chain_core.h, chain_widen.h) share.
#pragma once

#include "core/cuda/tucker_conv/chain_arguments.h"
#include "core/cuda/tucker_conv/load_rows.h"

namespace tessera::cuda {

template <class Math, class Block>
struct ChainTile {
  using T = typename Math::Storage;
  using State = typename Math::State;

  TESSERA_INLINE ChainTile(Block& runs_on, const ChainArguments<T>& arguments, std::int64_t index, char* memory)
      : block(runs_on), args(arguments), shape(arguments.shape), at(chain_layout(arguments.shape, block_shape<Math>())),
        tile(tile_at(arguments.shape.grid(), index)), rows(arguments.shape.rows.at(tile.class_h)),
        columns(arguments.shape.columns.at(tile.class_w)), window_h(window_of(rows, arguments.shape.tile_h)),
        window_w(window_of(columns, arguments.shape.tile_w)), shared(memory) {}

  TESSERA_INLINE bool empty() const { return tile.first_h >= rows.outs || tile.first_w >= columns.outs; }
  TESSERA_INLINE int window() const { return window_h * window_w; }
  TESSERA_INLINE int outputs() const { return shape.tile_h * shape.tile_w; }

  TESSERA_INLINE T* narrow_in() const { return reinterpret_cast<T*>(shared + at.narrow_in); }
  TESSERA_INLINE T* narrow_out() const { return reinterpret_cast<T*>(shared + at.narrow_out); }
  TESSERA_INLINE T* left(int buffer) const { return reinterpret_cast<T*>(shared + at.left + buffer * at.left_bytes); }
  TESSERA_INLINE float* right(int buffer) const {
    return reinterpret_cast<float*>(shared + at.right + buffer * at.right_bytes);
  }
  TESSERA_INLINE static int depth(int channels, int begin) {
    const int rest = round_up(channels - begin, Math::kUnit);
    return rest < kSlice ? rest : kSlice;
  }

  // Row and column of the image before the core under position `r` of the window; both may lie in the padding.
  TESSERA_INLINE int row_in(int r) const { return tile.first_h * rows.stride + rows.origin + r / window_w; }
  TESSERA_INLINE int column_in(int r) const { return tile.first_w * columns.stride + columns.origin + r % window_w; }

  // The pixel there; negative: padding.
  TESSERA_INLINE std::int64_t pixel_in(int r) const {
    const int row = row_in(r);
    const int column = column_in(r);
    if (r >= window() || row < 0 || row >= rows.inputs || column < 0 || column >= columns.inputs) return -1;
    return (std::int64_t{tile.image} * rows.inputs + row) * columns.inputs + column;
  }
  TESSERA_INLINE bool owned(int r) const {
    return owns(shape.rows, tile.class_h, tile.first_h, shape.tile_h, row_in(r)) &&
           owns(shape.columns, tile.class_w, tile.first_w, shape.tile_w, column_in(r));
  }
  // Pixel of the image after the core for output m of the tile; negative: beyond the image.
  TESSERA_INLINE std::int64_t pixel_out(int m) const {
    const int i = tile.first_h + m / shape.tile_w;
    const int j = tile.first_w + m % shape.tile_w;
    if (m >= outputs() || i >= rows.outs || j >= columns.outs) return -1;
    const std::int64_t row = std::int64_t{tile.image} * shape.rows.outputs() + rows.begin + i * rows.step;
    return row * shape.columns.outputs() + columns.begin + j * columns.step;
  }

  template <class Offset>
  TESSERA_INLINE void start(const Offset& offset) {
    block.each([&](int thread, State& state) {
      Math::clear(state);
      TESSERA_UNROLL
      for (int i = 0; i < Math::kTileRows; ++i) state.offset[i] = offset(Math::row(thread, i));
    });
  }

  // Slice [begin, begin + kSlice) of `count` weight rows from row n0 on.
  TESSERA_INLINE void load_weights(int thread, int buffer, const float* weights, std::int64_t distance, int n0, int count,
                                   int begin, int end, bool vector) const {
    load_rows(thread, kChainThreads, right(buffer), at.pitch_right, Math::kShape.columns, kSlice, begin, end, vector, weights,
              [&](int n) { return n0 + n < count ? weights + (n0 + n) * distance : nullptr; });
  }

  TESSERA_INLINE void store_y(std::int64_t pixel, int n, float value) const {
    if (pixel < 0 || n >= shape.wide_out || args.y == nullptr) return;
    const std::int64_t place = pixel * shape.wide_out + n;
    if (args.bias != nullptr) value += args.bias[n];
    if (args.residual != nullptr) value += widen(args.residual[place]);
    if (args.relu) value = value < 0 ? 0 : value;  // NaN passes
    args.y[place] = narrow<T>(value);
  }

  Block& block;
  const ChainArguments<T>& args;
  const ChainShape& shape;
  ChainLayout at;
  Tile tile;
  PassAxis rows, columns;
  int window_h, window_w;
  char* shared;
};

}  // namespace tessera::cuda
