// What the threads of one block do in the gradient of a core convolution's weights. The kernel and a walk over it on the host
// call these.
#pragma once

#include "core/cuda/core_conv/problems.h"

namespace tessera::cuda::core_conv {

template <WeightTile kTile, int kStride>
struct WeightBlock {
  static constexpr WeightSizes kSizes{kTile, kStride};
  struct Sums {
    float at[kTaps][4][4];  // [column of the kernel][output channel][channel]
  };

  const WeightProblem& problem;
  int first_out, first_in, split;

  // Block (x, y, z) of the grid (in_tiles, out_tiles, splits).
  TESSERA_HD WeightBlock(const WeightProblem& of, int x, int y, int z)
      : problem(of), first_out(y * kSizes.outs), first_in(x * kSizes.ins), split(z) {}
  TESSERA_HD int begin() const { return first_stage(problem.stages, problem.splits, split); }
  TESSERA_HD int end() const { return first_stage(problem.stages, problem.splits, split + 1); }

  // The rectangle of pixels of a stage.
  struct Place {
    int image, row, column;
  };
  TESSERA_HD Place place(int stage) const {
    const int tile = stage / problem.tiles_x;
    return {tile / problem.tiles_y, tile % problem.tiles_y * kTile.rows, stage % problem.tiles_x * kTile.columns};
  }

  // Shared memory of a stage: input [row][column][channel], then the gradient [row][column][output channel].
  template <int kWidth>
  TESSERA_HD Copy input_copy(const Place& at, int item) const {
    constexpr int kPerPixel = kSizes.ins / kWidth;
    const int c = first_in + item % kPerPixel * kWidth;
    const int y = at.row * kStride + problem.origin_y + item / kPerPixel / kSizes.in_columns;
    const int x = at.column * kStride + problem.origin_x + item / kPerPixel % kSizes.in_columns;
    const bool inside = y >= 0 && y < problem.in_rows && x >= 0 && x < problem.in_columns && c < problem.channels;
    return {inside ? ((at.image * problem.in_rows + y) * problem.in_columns + x) * problem.channels + c : 0, item * kWidth,
            inside};
  }

  // Pixels outside the result are zeros, so that they add nothing.
  template <int kWidth>
  TESSERA_HD Copy gradient_copy(const Place& at, int item) const {
    constexpr int kPerPixel = kSizes.outs / kWidth;
    const int o = first_out + item % kPerPixel * kWidth;
    const int y = at.row + item / kPerPixel / kTile.columns;
    const int x = at.column + item / kPerPixel % kTile.columns;
    const bool inside = y < problem.out_rows && x < problem.out_columns && o < problem.outs;
    return {inside ? ((at.image * problem.out_rows + y) * problem.out_columns + x) * problem.outs + o : 0,
            kSizes.input + item * kWidth, inside};
  }

  TESSERA_HD static int in_quad_of(int thread) { return thread % kTile.in_quads; }
  TESSERA_HD static int out_quad_of(int thread) { return thread / kTile.in_quads % kTile.out_quads; }
  TESSERA_HD static int row_of(int thread) { return thread / kTile.in_quads / kTile.out_quads; }

  // Where the first input and the first gradient of `thread` stand. A quarter of a warp reads 8 neighbouring quads or one.
  TESSERA_HD static int input_of(int thread) { return row_of(thread) * kSizes.in_columns * kSizes.ins + in_quad_of(thread) * 4; }
  TESSERA_HD static int gradient_of(int thread) { return kSizes.input + out_quad_of(thread) * 4; }

  TESSERA_HD void accumulate(const float* shared, int thread, Sums& sums) const {
    const float* const input = shared + input_of(thread);
    const float* const gradient = shared + gradient_of(thread);
    TESSERA_NO_UNROLL
    for (int row = 0; row < kTile.rows; ++row) {
      accumulate_row(input + row * kStride * kSizes.in_columns * kSizes.ins, gradient + row * kTile.columns * kSizes.outs, sums);
    }
  }

  // A pixel of the input serves up to three pixels of the gradient, one for each column of the kernel.
  TESSERA_HD void accumulate_row(const float* input, const float* gradient, Sums& sums) const {
    Quad window[kTaps];
    window[0] = quad_at(input);
    if (kStride == 1) window[1] = quad_at(input + kSizes.ins);
    TESSERA_UNROLL
    for (int x = 0; x < kTile.columns; ++x) {
      TESSERA_UNROLL
      for (int fresh = kTaps - kStride; fresh < kTaps; ++fresh) {
        window[fresh] = quad_at(input + (x * kStride + fresh) * kSizes.ins);
      }
      const Quad g = quad_at(gradient + x * kSizes.outs);
      TESSERA_UNROLL
      for (int kx = 0; kx < kTaps; ++kx) {
        add_products(g.x, window[kx], sums.at[kx][0]);
        add_products(g.y, window[kx], sums.at[kx][1]);
        add_products(g.z, window[kx], sums.at[kx][2]);
        add_products(g.w, window[kx], sums.at[kx][3]);
      }
      TESSERA_UNROLL
      for (int kept = 0; kept < kTaps - kStride; ++kept) window[kept] = window[kept + kStride];
    }
  }
  TESSERA_HD static void add_products(float gradient, const Quad& input, float (&sums)[4]) {
    sums[0] += gradient * input.x;
    sums[1] += gradient * input.y;
    sums[2] += gradient * input.z;
    sums[3] += gradient * input.w;
  }

  // Calls store(element of the gradient, sum) for what `thread` owns of the kernel's rows and columns that there are.
  template <class Store>
  TESSERA_HD void for_each_result(int thread, const Sums& sums, Store&& store) const {
    if (row_of(thread) >= problem.kernel_rows) return;
    TESSERA_UNROLL
    for (int i = 0; i < kTaps * 16; ++i) {
      const int kx = i / 16, out = i / 4 % 4, channel = i % 4;
      const int o = first_out + out_quad_of(thread) * 4 + out;
      const int c = first_in + in_quad_of(thread) * 4 + channel;
      if (kx >= problem.kernel_columns || o >= problem.outs || c >= problem.channels) continue;
      const int tap = (o * problem.kernel_rows + row_of(thread)) * problem.kernel_columns + kx;
      store(tap * problem.channels + c, sums.at[kx][out][channel]);
    }
  }
};

}  // namespace tessera::cuda::core_conv
