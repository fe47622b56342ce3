// The geometry of a fused Tucker-2 convolution: tiles, windows with their halo, parity classes of the transposed core and shared
// memory. A "pass" takes a wide image to a narrow one (1x1), runs the core from shared memory and widens again (1x1). Forward is
// one pass; the gradient of the input is another, through the transposed core. A transposed core of stride s is s x s
// interleaved convolutions of stride 1, one per parity class of the output's position, each with every s-th tap.
#pragma once

#include <cstdint>

#include "core/support/host_device.h"
#include "core/support/rounding.h"

namespace tessera::cuda {

// The core convolution along height or width: window i of `outs` begins at image position i * stride - padding.
struct CoreAxis {
  int image = 1;   // positions of the narrow image before the core
  int outs = 1;    // and after it
  int kernel = 1;
  int stride = 1;
  int padding = 0;
};

// One class of a pass along one axis: its output i lies at `begin` + i * step and reads positions i * stride + origin + a of the
// narrow image, 0 <= a < taps, with tap tap_begin + a * tap_step of the core.
struct PassAxis {
  int outs, begin, step;
  int inputs, stride, origin;
  int taps, tap_begin, tap_step;
};

TESSERA_HD constexpr PassAxis forward_axis(const CoreAxis& core) {
  return {core.outs, 0, 1, core.image, core.stride, -core.padding, core.kernel, 0, 1};
}

// grad_narrow[q] sums grad[i] core[d] over i * stride - padding + d = q. For q = p + stride * j these are the taps
// d = d0 + stride * b, with d0 = (p + padding) mod stride, at i = j + (p + padding - d0) / stride - b; a counts b backwards.
TESSERA_HD constexpr PassAxis backward_axis(const CoreAxis& core, int p) {
  const int d0 = (p + core.padding) % core.stride;
  const int taps = d0 < core.kernel ? ceil_div(core.kernel - d0, core.stride) : 0;
  const int outs = p < core.image ? ceil_div(core.image - p, core.stride) : 0;
  const int origin = (p + core.padding - d0) / core.stride - (taps > 0 ? taps - 1 : 0);
  return {outs, p, core.stride, core.outs, 1, origin, taps, d0 + core.stride * (taps - 1), -core.stride};
}

struct PassAxes {
  CoreAxis core;
  bool backward = false;
  TESSERA_HD constexpr int classes() const { return backward ? core.stride : 1; }
  TESSERA_HD constexpr PassAxis at(int cls) const { return backward ? backward_axis(core, cls) : forward_axis(core); }
  TESSERA_HD constexpr int inputs() const { return backward ? core.outs : core.image; }
  TESSERA_HD constexpr int outputs() const { return backward ? core.image : core.outs; }
};

// Positions of the narrow image that `tile` neighbouring outputs read; 1 where there is no tap, so that every tile has some.
TESSERA_HD constexpr int window_of(const PassAxis& axis, int tile) {
  return axis.taps > 0 ? (tile - 1) * axis.stride + axis.taps : 1;
}

TESSERA_HD constexpr int widest_window(const PassAxes& axes, int tile) {
  int widest = 1;
  for (int cls = 0; cls < axes.classes(); ++cls) {
    const int window = window_of(axes.at(cls), tile);
    widest = window > widest ? window : widest;
  }
  return widest;
}

// Whether this tile stores position q of the narrow image. Tiles overlap by their halo, so several may compute q. Its owner is in
// the first class whose windows reach q: the last tile there that begins at or before q. `first` is the tile's first output.
TESSERA_HD constexpr bool owns(const PassAxes& axes, int cls, int first, int tile, int q) {
  for (int other = 0; other <= cls; ++other) {
    const PassAxis axis = axes.at(other);
    const int offset = q - axis.origin;
    if (axis.taps == 0 || axis.outs == 0 || offset < 0 || offset >= window_of(axis, axis.outs)) continue;
    if (other < cls) return false;
    const int last = (axis.outs - 1) / tile;
    const int owner = offset / (tile * axis.stride);
    return first / tile == (owner < last ? owner : last);
  }
  return false;
}

// End of the positions of the narrow image that any window reaches; those behind it are never stored.
TESSERA_HD constexpr int reached(const CoreAxis& core) {
  const int end = (core.outs - 1) * core.stride - core.padding + core.kernel;
  return end < core.image ? end : core.image;
}

// Which tile a block computes. Blocks count images slowest, then classes, then tiles row by row.
struct TileGrid {
  int tile_h, tile_w, tiles_h, tiles_w, classes_h, classes_w, images;
  TESSERA_HD constexpr std::int64_t blocks() const {
    return std::int64_t{images} * classes_h * classes_w * tiles_h * tiles_w;
  }
};

TESSERA_HD constexpr TileGrid tile_grid(const PassAxes& rows, const PassAxes& columns, int tile_h, int tile_w, int images) {
  // Class 0 has the most outputs.
  return {tile_h, tile_w, ceil_div(rows.at(0).outs, tile_h), ceil_div(columns.at(0).outs, tile_w), rows.classes(),
          columns.classes(), images};
}

struct Tile {
  int image, class_h, class_w, first_h, first_w;
};

TESSERA_HD constexpr Tile tile_at(const TileGrid& grid, std::int64_t block) {
  const int column = static_cast<int>(block % grid.tiles_w);
  block /= grid.tiles_w;
  const int row = static_cast<int>(block % grid.tiles_h);
  block /= grid.tiles_h;
  const int class_w = static_cast<int>(block % grid.classes_w);
  block /= grid.classes_w;
  const int class_h = static_cast<int>(block % grid.classes_h);
  return {static_cast<int>(block / grid.classes_h), class_h, class_w, row * grid.tile_h, column * grid.tile_w};
}

}  // namespace tessera::cuda
