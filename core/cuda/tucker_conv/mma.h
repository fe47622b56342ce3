// The products of ffma.h on tensor cores, f32 sums: m16n8k16 for bf16 and f16, m16n8k8 for f32 rounded to tf32. The places of a
// lane's operands and sums are those of the PTX ISA, section "Matrix Fragments for mma": a warp is eight groups of four lanes.
#pragma once

#include <type_traits>

#include "core/compute_type.h"
#include "core/cuda/tucker_conv/shapes.h"
#if TESSERA_KERNELS
#include "core/cuda/kernel/mma_step.cuh"
#endif

namespace tessera::cuda {

// Where a thread stands in its block.
TESSERA_INLINE int warp_of(int thread) { return thread / 32; }
TESSERA_INLINE int group_of(int thread) { return thread % 32 / 4; }
TESSERA_INLINE int lane_of_group(int thread) { return thread % 4; }

// A block of a pass by eight warps, four along the rows, each with kRowTiles x kColumnTiles tiles of 16 x 8 sums. A row tile has
// two rows of a thread, eight apart; a column tile two neighbouring columns.
template <class T, int kRowTiles, int kColumnTiles>
struct Mma {
  using Storage = T;
  static constexpr int kTileRows = 2 * kRowTiles;
  static constexpr int kTileColumns = 2 * kColumnTiles;
  static constexpr BlockShape kShape{.rows = 64 * kRowTiles, .columns = 16 * kColumnTiles,
                                     .element_bytes = static_cast<int>(sizeof(T)), .tensor_cores = true};
  static constexpr int kUnit = sizeof(T) == 2 ? 16 : 8;  // channels that one step takes

  struct State {
    float sum[kRowTiles][kColumnTiles][4];  // of a tile: [row][column]
    int offset[kTileRows];
  };

  // Row and column in the block of a thread's sum (i, j).
  TESSERA_INLINE static int row(int thread, int i) {
    const int row_tile = i / 2, half = i % 2;
    return row_tile * 64 + warp_of(thread) % 4 * 16 + half * 8 + group_of(thread);
  }
  TESSERA_INLINE static int column(int thread, int j) {
    const int column_tile = warp_of(thread) / 4 * kColumnTiles + j / 2, second = j % 2;
    return column_tile * 8 + lane_of_group(thread) * 2 + second;
  }
  TESSERA_INLINE static float value(const State& state, int i, int j) { return state.sum[i / 2][j / 2][i % 2 * 2 + j % 2]; }
  TESSERA_INLINE static void clear(State& state) {
    TESSERA_UNROLL
    for (int i = 0; i < kRowTiles; ++i) {
      TESSERA_UNROLL
      for (int j = 0; j < kColumnTiles; ++j) {
        TESSERA_UNROLL
        for (int e = 0; e < 4; ++e) state.sum[i][j][e] = 0;
      }
    }
  }

  // As Ffma::multiply().
  TESSERA_INLINE static void multiply(int thread, State& state, const T* a, const float* b, int pitch_b, int depth) {
#if TESSERA_ON_DEVICE
    const int lane = lane_of_group(thread);
    b += (warp_of(thread) / 4 * kColumnTiles * 8 + group_of(thread)) * pitch_b;
    for (int k = 0; k < depth; k += kUnit) {
      unsigned left[kRowTiles][4];
      TESSERA_UNROLL
      for (int i = 0; i < kTileRows; ++i) {
        left[i / 2][i % 2] = MmaStep<T>::left(a + state.offset[i] + k, lane, 0);
        left[i / 2][i % 2 + 2] = MmaStep<T>::left(a + state.offset[i] + k, lane, 1);
      }
      TESSERA_UNROLL
      for (int j = 0; j < kColumnTiles; ++j) {
        const float* const row = b + j * 8 * pitch_b + k;
        const unsigned right[2] = {MmaStep<T>::right(row, lane, 0), MmaStep<T>::right(row, lane, 1)};
        TESSERA_UNROLL
        for (int i = 0; i < kRowTiles; ++i) MmaStep<T>::run(state.sum[i][j], left[i], right);
      }
    }
#else
    // The unit's sums, one by one: a lane's operands come from its whole warp.
    for (int i = 0; i < kTileRows; ++i) {
      for (int j = 0; j < kTileColumns; ++j) {
        float& sum = state.sum[i / 2][j / 2][i % 2 * 2 + j % 2];
        const float* const right = b + column(thread, j) * pitch_b;
        for (int k = 0; k < depth; ++k) sum += widen(a[state.offset[i] + k]) * widen(narrow<T>(right[k]));
      }
    }
#endif
  }
};

// A correlation's tile as CorrelateFfma has it, operands as tf32, which holds every bf16 and f16 number: pixels are the summed
// axis, and neighbours along it do not lie side by side, as 16-bit operands would need them. A warp has 16 x 8 of each slot, a
// row of the tile is one step.
template <class T>
struct CorrelateMma {
  using Storage = T;
  TESSERA_INLINE static int row(int thread, int e) { return warp_of(thread) % 2 * 16 + group_of(thread) + e / 2 * 8; }
  TESSERA_INLINE static int column(int thread, int e) { return warp_of(thread) / 2 * 8 + lane_of_group(thread) * 2 + e % 2; }

  TESSERA_INLINE static void multiply(int thread, CorrelateState& state, const T* left, const T* right, int step_h, int step_w) {
#if TESSERA_ON_DEVICE
    const int lane = lane_of_group(thread);
    left += lane * kPitchOfA + warp_of(thread) % 2 * 16 + group_of(thread);
    right += lane * step_w + warp_of(thread) / 2 * 8 + group_of(thread);
    TESSERA_UNROLL
    for (int r = 0; r < kCorrelateH; ++r) {
      const T* const a = left + r * kCorrelateW * kPitchOfA;
      const unsigned operand[4] = {MmaStep<float>::round(widen(a[0])), MmaStep<float>::round(widen(a[8])),
                                   MmaStep<float>::round(widen(a[4 * kPitchOfA])),
                                   MmaStep<float>::round(widen(a[4 * kPitchOfA + 8]))};
      const T* const pixel = right + r * step_h;
      TESSERA_UNROLL
      for (int slot = 0; slot < kSlots; ++slot) {
        const T* const b = pixel + state.offset[slot];
        const unsigned other[2] = {MmaStep<float>::round(widen(b[0])), MmaStep<float>::round(widen(b[4 * step_w]))};
        MmaStep<float>::run(state.sum[slot], operand, other);
      }
    }
#else
    for (int slot = 0; slot < kSlots; ++slot) {
      for (int e = 0; e < 4; ++e) {
        for (int p = 0; p < kCorrelatePixels; ++p) {
          const T* const pixel = right + p / kCorrelateW * step_h + p % kCorrelateW * step_w;
          const T b = pixel[state.offset[slot] + column(thread, e)];
          state.sum[slot][e] += widen(left[p * kPitchOfA + row(thread, e)]) * widen(b);
        }
      }
    }
#endif
  }
};

}  // namespace tessera::cuda
