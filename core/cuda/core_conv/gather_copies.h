// Where one block of a core convolution works, and what its threads copy to shared memory for a stage.
#pragma once

#include "core/cuda/core_conv/problem.h"

namespace tessera::cuda::core_conv {

// Full: all 3x3 taps, without questions asked for each.
template <GatherTile kTile, int kStride, bool kFull>
struct GatherCopies {
  static constexpr GatherSizes kSizes{kTile, kStride};

  const GatherProblem& problem;
  Axis rows, columns;
  int image, first_row, first_column, first_out, split;

  // Of the grid (images * phases * tiles, out_tiles, splits). False where this phase has fewer pixels than the largest.
  TESSERA_HD GatherCopies(const GatherProblem& of, int x, int y, int z) : problem(of), first_out(y * kSizes.outs), split(z) {
    first_column = x % of.tiles_x * kTile.columns;
    x /= of.tiles_x;
    first_row = x % of.tiles_y * kSizes.tile_rows;
    x /= of.tiles_y;
    const int phase = x % of.phases();
    rows = of.rows[phase / of.step];
    columns = of.columns[phase % of.step];
    image = x / of.phases();
  }
  TESSERA_HD bool empty() const { return first_row >= rows.count || first_column >= columns.count; }
  TESSERA_HD int begin() const { return first_stage(problem.stages, problem.splits, split); }
  TESSERA_HD int end() const { return first_stage(problem.stages, problem.splits, split + 1); }

  // Even columns of the input stand before odd ones where neighbouring pixels of the result are two columns apart.
  TESSERA_HD static int column_at(int column) { return (column % kStride * kSizes.half_columns + column / kStride) * 4; }

  // Neighbouring threads read neighbouring channels of a pixel. kWidth: 4 floats a copy, or 1.
  template <int kWidth>
  TESSERA_HD Copy input_copy(int stage, int item) const {
    constexpr int kPerPixel = kTile.channels / kWidth;
    const int channel = item % kPerPixel * kWidth;
    const int column = item / kPerPixel % kSizes.in_columns;
    const int row = item / kPerPixel / kSizes.in_columns;
    const int y = first_row * kStride + rows.origin + row;
    const int x = first_column * kStride + columns.origin + column;
    const int c = stage * kTile.channels + channel;
    const bool inside = y >= 0 && y < problem.in_rows && x >= 0 && x < problem.in_columns && c < problem.channels;
    return {inside ? ((image * problem.in_rows + y) * problem.in_columns + x) * problem.channels + c : 0,
            channel / 4 * kSizes.input_plane + row * kSizes.row_pitch + column_at(column) + channel % 4, inside};
  }

  // Neighbouring threads read neighbouring channels c, or output channels where those are what stands side by side.
  template <int kWidth>
  TESSERA_HD Copy weight_copy(int stage, int item) const {
    constexpr int kChannels = kTile.channels / kWidth;
    const bool channels_first = problem.weight_channel == 1;
    const int inner = item % (kChannels * kSizes.outs);
    const int channel = (channels_first ? inner % kChannels : inner / kSizes.outs) * kWidth;
    const int out = channels_first ? inner / kChannels : inner % kSizes.outs;
    const int tap = item / (kChannels * kSizes.outs);
    const int c = stage * kTile.channels + channel;
    const int row = tap / kTaps, column = tap % kTaps;
    const bool inside =
        first_out + out < problem.outs && c < problem.channels && (kFull || (row < rows.taps && column < columns.taps));
    const int of_kernel = (rows.weight_first + row * rows.weight_step) * problem.kernel_columns + columns.weight_first +
                          column * columns.weight_step;
    return {inside ? (first_out + out) * problem.weight_out + c * problem.weight_channel + of_kernel * problem.weight_tap : 0,
            kSizes.input + (tap * kSizes.quads + channel / 4) * kSizes.weight_plane + out * 4 + channel % 4, inside};
  }
};

}  // namespace tessera::cuda::core_conv
