// How the correlations that give weight gradients (correlate.h) are cut into tiles, slots and groups of slots.
#pragma once

#include "core/cuda/tucker_conv/geometry.h"

namespace tessera::cuda {

inline constexpr int kCorrelateH = 4, kCorrelateW = 8;  // pixels of a tile; a row is one step of the tensor cores
inline constexpr int kCorrelatePixels = kCorrelateH * kCorrelateW;
inline constexpr int kSlots = 9;
inline constexpr int kSliceOfB = 32;  // channels of a slot, and of `left` that a block takes
inline constexpr int kPitchOfA = kSliceOfB + 8;  // four pixels that a warp reads at once lie in different banks

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
