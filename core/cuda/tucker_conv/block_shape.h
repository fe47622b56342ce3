// The blocks that a fused Tucker-2 convolution computes its products in, and the shared memory of one thread block. Plain
// numbers: the planner and the kernels read the same.
#pragma once

#include <cstddef>

#include "core/cuda/tucker_conv/geometry.h"

namespace tessera::cuda {

inline constexpr int kChainThreads = 256;
inline constexpr int kSlice = 32;         // channels that are staged at a time
inline constexpr int kChannelUnit = 16;   // narrow images are padded with zeros to a multiple of this many channels

struct BlockShape {
  int rows, columns;  // pixels, channels
  int element_bytes;
  bool tensor_cores;
  // Eight rows that a warp reads at once lie in different banks: their distance is an odd multiple of 16 bytes, and 32 bytes for
  // pairs of f32 that become 16-bit operands.
  TESSERA_HD constexpr int pad_left() const { return 16 / element_bytes; }
  TESSERA_HD constexpr int pad_right() const { return element_bytes == 2 ? 8 : 4; }
};

// Blocks of a processor that the registers leave room for: kernels are compiled to it.
TESSERA_HD constexpr int resident_by_registers(const BlockShape& block) { return block.rows * block.columns >= 128 * 64 ? 1 : 2; }

// The block of a Math, in device code too, where a constexpr member has no address.
template <class Math>
TESSERA_HD constexpr BlockShape block_shape() {
  return {Math::kShape.rows, Math::kShape.columns, Math::kShape.element_bytes, Math::kShape.tensor_cores};
}

// A pass: x [images, h, w, wide_in] -> narrow_in -> core -> narrow_out -> y [.., wide_out].
struct ChainShape {
  PassAxes rows, columns;
  int images = 1;
  int wide_in = 1, narrow_in = 1, narrow_out = 1, wide_out = 1;
  bool has_in = true, has_out = true;  // a missing factor: the wide image is the narrow one
  int tile_h = 1, tile_w = 1;          // outputs of one block (of one class)

  TESSERA_HD constexpr int taps() const { return rows.core.kernel * columns.core.kernel; }
  TESSERA_HD constexpr TileGrid grid() const { return tile_grid(rows, columns, tile_h, tile_w, images); }
};

// Offsets into a block's shared memory, in bytes, and distances between rows, in elements.
struct ChainLayout {
  int pitch_in, pitch_out, pitch_left, pitch_right;
  int narrow_in, narrow_out, left, right;  // left, right: the first of two buffers
  int left_bytes, right_bytes;             // of one buffer
  int total;
};

TESSERA_HD constexpr ChainLayout chain_layout(const ChainShape& shape, const BlockShape& block) {
  ChainLayout at{};
  const int bytes = block.element_bytes;
  at.pitch_in = round_up(shape.narrow_in, kChannelUnit) + block.pad_left();
  at.pitch_out = round_up(shape.narrow_out, kChannelUnit) + block.pad_left();
  at.pitch_left = kSlice + block.pad_left();
  at.pitch_right = kSlice + block.pad_right();
  const int window = widest_window(shape.rows, shape.tile_h) * widest_window(shape.columns, shape.tile_w);
  at.narrow_in = 0;
  at.narrow_out = at.narrow_in + window * at.pitch_in * bytes;
  at.left = at.narrow_out + (shape.has_out ? shape.tile_h * shape.tile_w * at.pitch_out * bytes : 0);
  at.left_bytes = shape.has_in ? block.rows * at.pitch_left * bytes : 0;
  at.right = at.left + 2 * at.left_bytes;
  at.right_bytes = block.columns * at.pitch_right * static_cast<int>(sizeof(float));
  at.total = at.right + 2 * at.right_bytes;
  return at;
}

}  // namespace tessera::cuda
