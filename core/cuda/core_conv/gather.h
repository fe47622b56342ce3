// What one block of a core convolution is: where it works, what its threads copy to shared memory for a stage, and what a thread
// multiplies and stores. The kernel and a walk over it on the host call these.
#pragma once

#include "core/cuda/core_conv/problems.h"

namespace tessera::cuda::core_conv {

// Full: all 3x3 taps, without a test for each.
template <GatherTile kTile, int kStride, bool kFull>
struct GatherBlock {
  static constexpr GatherSizes kSizes{kTile, kStride};
  struct Sums {
    float at[kTile.rows][kTile.outs];
  };

  const GatherProblem& problem;
  Axis rows, columns;
  int image, first_row, first_column, first_out, split;

  // Block (x, y, z) of the grid (images * phases * tiles, out_tiles, splits).
  TESSERA_HD GatherBlock(const GatherProblem& of, int x, int y, int z) : problem(of), first_out(y * kSizes.outs), split(z) {
    first_column = x % of.tiles_x * kTile.columns;
    x /= of.tiles_x;
    first_row = x % of.tiles_y * kSizes.tile_rows;
    x /= of.tiles_y;
    const int phase = x % of.phases();
    rows = of.rows[phase / of.step];
    columns = of.columns[phase % of.step];
    image = x / of.phases();
  }
  // Where this phase has fewer pixels than the largest.
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

  TESSERA_HD static int group_of(int thread) { return thread / kSizes.group_threads; }
  TESSERA_HD static int out_of(int thread) { return thread % kOutLanes; }
  TESSERA_HD static int column_of(int thread) { return thread / kOutLanes % kTile.columns; }
  TESSERA_HD static int strip_of(int thread) { return thread % kSizes.group_threads / kOutLanes / kTile.columns; }

  // Where the first input and the first weights of `thread` stand. A quarter of a warp reads 8 neighbouring quads or one.
  TESSERA_HD static int input_of(int thread) {
    return strip_of(thread) * kTile.rows * kStride * kSizes.row_pitch + column_of(thread) * 4;
  }
  TESSERA_HD static int weight_of(int thread) { return kSizes.input + out_of(thread) * 4; }

  // Adds a stage that stands in `shared` to the sums of `thread`.
  TESSERA_HD void accumulate(const float* shared, int thread, Sums& sums) const {
    const float* const input = shared + input_of(thread);
    const float* const weights = shared + weight_of(thread);
    TESSERA_NO_UNROLL
    for (int quad = group_of(thread); quad < kSizes.quads; quad += kTile.groups) {
      accumulate_quad(input + quad * kSizes.input_plane, weights + quad * kSizes.weight_plane, sums);
    }
  }

  TESSERA_HD void accumulate_quad(const float* input, const float* weights, Sums& sums) const {
    TESSERA_UNROLL
    for (int kx = 0; kx < kTaps; ++kx) {
      if (!kFull && kx >= columns.taps) break;
      Quad window[kSizes.window];
      TESSERA_UNROLL
      for (int i = 0; i < kSizes.window; ++i) window[i] = quad_at(input + i * kSizes.row_pitch + column_at(kx));
      TESSERA_UNROLL
      for (int ky = 0; ky < kTaps; ++ky) {
        if (!kFull && ky >= rows.taps) break;
        TESSERA_UNROLL
        for (int o = 0; o < kTile.outs; ++o) {
          const Quad w = quad_at(weights + (ky * kTaps + kx) * kSizes.quads * kSizes.weight_plane + o * kOutLanes * 4);
          TESSERA_UNROLL
          for (int p = 0; p < kTile.rows; ++p) {
            const Quad in = window[p * kStride + ky];
            sums.at[p][o] += in.x * w.x;
            sums.at[p][o] += in.y * w.y;
            sums.at[p][o] += in.z * w.z;
            sums.at[p][o] += in.w * w.w;
          }
        }
      }
    }
  }

  // Where sum (p, o) of a thread of a later group stands for the first group.
  TESSERA_HD static int exchange_at(int thread, int p, int o) {
    return ((group_of(thread) - 1) * kSizes.sums + p * kTile.outs + o) * kSizes.group_threads + thread % kSizes.group_threads;
  }

  // Calls store(element of the result, channel, sum) for what `thread` of the first group owns.
  template <class Store>
  TESSERA_HD void for_each_result(int thread, const Sums& sums, Store&& store) const {
    const int x = first_column + column_of(thread);
    if (x >= columns.count) return;
    TESSERA_UNROLL
    for (int p = 0; p < kTile.rows; ++p) {
      const int y = first_row + strip_of(thread) * kTile.rows + p;
      if (y >= rows.count) break;
      const int row = image * problem.out_rows + y * problem.step + rows.offset;
      const int pixel = row * problem.out_columns + x * problem.step + columns.offset;
      TESSERA_UNROLL
      for (int o = 0; o < kTile.outs; ++o) {
        const int out = first_out + o * kOutLanes + out_of(thread);
        if (out < problem.outs) store(pixel * problem.outs + out, out, sums.at[p][o]);
      }
    }
  }
};

}  // namespace tessera::cuda::core_conv
