// What the threads of one block do in a core convolution: what a thread multiplies and stores, beside its copies. The kernel and
// a walk over it on the host call these.
#pragma once

#include "core/cuda/core_conv/gather_copies.h"

namespace tessera::cuda::core_conv {

template <GatherTile kTile, int kStride, bool kFull>
struct GatherBlock : GatherCopies<kTile, kStride, kFull> {
  using Copies = GatherCopies<kTile, kStride, kFull>;
  using Copies::columns, Copies::rows, Copies::first_column, Copies::first_out, Copies::first_row, Copies::problem,
      Copies::kSizes;
  struct Sums {
    float at[kTile.rows][kTile.outs];
  };

  TESSERA_HD GatherBlock(const GatherProblem& of, int x, int y, int z) : Copies(of, x, y, z) {}

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
      for (int i = 0; i < kSizes.window; ++i) window[i] = quad_at(input + i * kSizes.row_pitch + Copies::column_at(kx));
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
      const int row = this->image * problem.out_rows + y * problem.step + rows.offset;
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
