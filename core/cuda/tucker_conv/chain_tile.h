// One block's part of a pass of a fused Tucker-2 convolution: which pixels it owns, where they lie in its shared memory, and
// where the sums of the three phases (chain.h) go.
#pragma once

#include "core/cuda/tucker_conv/block.h"
#include "core/cuda/tucker_conv/kernels.h"

namespace tessera::cuda {

// Rows of weights, `channels` each, in global memory.
struct WeightRows {
  const float* first;
  std::int64_t distance;  // from row to row, in elements
  int rows, channels;
  bool vector;  // as StagedRows has it
};

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
  // Where the window of output m begins in narrow_in(). Outputs beyond the tile compute the first one again, and are dropped.
  TESSERA_INLINE int window_offset(int m) const {
    if (m >= outputs()) return 0;
    return (m / shape.tile_w * rows.stride * window_w + m % shape.tile_w * columns.stride) * at.pitch_in;
  }

  // Sums of zero; row i of the left operand begins at offset(i).
  template <class Offset>
  TESSERA_INLINE void start(const Offset& offset) {
    block.each([&](int thread, State& state) {
      Math::clear(state);
      TESSERA_UNROLL
      for (int i = 0; i < Math::kTileRows; ++i) state.offset[i] = offset(Math::row(thread, i));
    });
  }

  // Channels [begin, begin + kSlice) of weight rows n0, n0 + 1, ... to right(buffer).
  TESSERA_INLINE void load_weights(int thread, int buffer, const WeightRows& weights, int n0, int begin) const {
    const StagedRows<float> staged{.to = right(buffer), .pitch = at.pitch_right, .rows = Math::kShape.columns, .columns = kSlice,
                                   .begin = begin, .end = weights.channels, .vector = weights.vector,
                                   .any_valid = weights.first};
    load_rows(thread, staged,
              [&](int n) { return n0 + n < weights.rows ? weights.first + (n0 + n) * weights.distance : nullptr; });
  }

  // The block's sums from row m0 and column n0 on: positions of the window x channels of the narrow image.
  TESSERA_INLINE void store_narrow_in(int thread, const State& state, int m0, int n0) const {
    TESSERA_UNROLL
    for (int i = 0; i < Math::kTileRows; ++i) {
      const int r = m0 + Math::row(thread, i);
      if (r >= window()) continue;
      const std::int64_t pixel = pixel_in(r);
      const bool stored = args.narrow_in != nullptr && pixel >= 0 && owned(r);
      TESSERA_UNROLL
      for (int j = 0; j < Math::kTileColumns; ++j) {
        const int n = n0 + Math::column(thread, j);
        if (n >= round_up(shape.narrow_in, kChannelUnit)) continue;
        // Zeros in the padding, as there is no bias, and in channels that fill up a unit.
        const T value = narrow<T>(pixel >= 0 && n < shape.narrow_in ? Math::value(state, i, j) : 0.0F);
        narrow_in()[r * at.pitch_in + n] = value;
        if (stored && n < shape.narrow_in) args.narrow_in[pixel * shape.narrow_in + n] = value;
      }
    }
  }

  // Outputs of the tile x channels after the core; without an out factor these are y's.
  TESSERA_INLINE void store_narrow_out(int thread, const State& state, int m0, int n0) const {
    TESSERA_UNROLL
    for (int i = 0; i < Math::kTileRows; ++i) {
      const int m = m0 + Math::row(thread, i);
      if (m >= outputs()) continue;
      const std::int64_t pixel = pixel_out(m);
      TESSERA_UNROLL
      for (int j = 0; j < Math::kTileColumns; ++j) {
        const int n = n0 + Math::column(thread, j);
        const float sum = Math::value(state, i, j);
        if (!shape.has_out) {
          store_y(pixel, n, sum);
        } else if (n < round_up(shape.narrow_out, kChannelUnit)) {
          const T value = narrow<T>(n < shape.narrow_out ? sum : 0.0F);
          narrow_out()[m * at.pitch_out + n] = value;
          if (args.narrow_out != nullptr && pixel >= 0 && n < shape.narrow_out) {
            args.narrow_out[pixel * shape.narrow_out + n] = value;
          }
        }
      }
    }
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
