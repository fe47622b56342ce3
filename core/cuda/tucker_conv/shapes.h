// What one block of a fused Tucker-2 convolution's kernels computes: a pass (chain.h) and a correlation (correlate.h) cut into
// blocks, tiles and slices, and the shared memory that a block needs. Plain numbers: the planner and the kernels read the same.
#pragma once

#include <cstddef>

#include "core/cuda/tucker_conv/geometry.h"

namespace tessera::cuda {

inline constexpr int kBlockThreads = 256;  // of either kernel
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

inline constexpr int kCorrelateH = 4, kCorrelateW = 8;  // pixels of a tile; a row is one step of the tensor cores
inline constexpr int kCorrelatePixels = kCorrelateH * kCorrelateW;
inline constexpr int kSlots = 9;
inline constexpr int kSliceOfB = 32;  // channels of a slot, and of `left` that a block takes
inline constexpr int kPitchOfA = kSliceOfB + 8;  // four pixels that a warp reads at once lie in different banks

// What a thread of a correlation's block has in registers: its sums of each slot, and where the slot begins in `right`.
struct CorrelateState {
  float sum[kSlots][4];
  int offset[kSlots];  // in elements
  float bias;

  TESSERA_INLINE void clear() {
    bias = 0;
    TESSERA_UNROLL
    for (int slot = 0; slot < kSlots; ++slot) {
      TESSERA_UNROLL
      for (int e = 0; e < 4; ++e) sum[slot][e] = 0;
    }
  }
};

TESSERA_HD constexpr int correlation_window(const CoreAxis& axis, int tile) { return (tile - 1) * axis.stride + axis.kernel; }

struct CorrelationTile {
  int image, first_h, first_w;
};

// Slots [0, slots) of one block: taps tap0 + slot of channels b0.. or channels b0 + 32 slot.. of the one tap.
struct SlotGroup {
  int a0, b0, tap0, slots;
};

struct CorrelationShape {
  int images = 1;
  CoreAxis rows, columns;
  int a = 1, b = 1;  // channels of left and right

  TESSERA_HD constexpr int taps() const { return rows.kernel * columns.kernel; }
  TESSERA_HD constexpr bool by_slice() const { return taps() == 1 && rows.stride == 1 && columns.stride == 1; }
  // Slices of `right` that a block stages.
  TESSERA_HD constexpr int slices() const {
    if (!by_slice()) return 1;
    const int all = ceil_div(b, kSliceOfB);
    return all < kSlots ? all : kSlots;
  }
  TESSERA_HD constexpr int pitch_right() const { return slices() * kSliceOfB + 8; }
  TESSERA_HD constexpr int right_elements() const {
    return correlation_window(rows, kCorrelateH) * correlation_window(columns, kCorrelateW) * pitch_right();
  }
  TESSERA_HD constexpr int shared_elements() const { return 2 * (kCorrelatePixels * kPitchOfA + right_elements()); }

  TESSERA_HD constexpr int tap_groups() const { return by_slice() ? 1 : ceil_div(taps(), kSlots); }
  TESSERA_HD constexpr int b_groups() const { return ceil_div(b, slices() * kSliceOfB); }
  TESSERA_HD constexpr int groups() const { return ceil_div(a, kSliceOfB) * b_groups() * tap_groups(); }
  TESSERA_HD constexpr SlotGroup group(int index) const {
    const int tap_group = index % tap_groups();
    index /= tap_groups();
    const int b0 = index % b_groups() * slices() * kSliceOfB;
    const int a0 = index / b_groups() * kSliceOfB;
    const int left = by_slice() ? ceil_div(b - b0, kSliceOfB) : taps() - tap_group * kSlots;
    return {a0, b0, tap_group * kSlots, left < kSlots ? left : kSlots};
  }

  TESSERA_HD constexpr std::int64_t tiles() const {
    return std::int64_t{images} * ceil_div(rows.outs, kCorrelateH) * ceil_div(columns.outs, kCorrelateW);
  }
  TESSERA_HD constexpr CorrelationTile tile_at(std::int64_t tile) const {
    const int tiles_w = ceil_div(columns.outs, kCorrelateW);
    const int tiles_h = ceil_div(rows.outs, kCorrelateH);
    const int column = static_cast<int>(tile % tiles_w);
    const int row = static_cast<int>(tile / tiles_w % tiles_h);
    return {static_cast<int>(tile / tiles_w / tiles_h), row * kCorrelateH, column * kCorrelateW};
  }
};

}  // namespace tessera::cuda
