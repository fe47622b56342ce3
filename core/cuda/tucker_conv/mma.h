// The same blocks on tensor cores, f32 sums: m16n8k16 for bf16 and f16, m16n8k8 for f32 rounded to tf32. The left operand is
// stored in its own type, the right one (weights) in f32 and rounded as it is read. Eight warps, four along the rows; the places
// of a lane's operands and sums are those of the PTX ISA, section "Matrix Fragments for mma".
#pragma once

#include "core/compute_type.h"
#include "core/cuda/tucker_conv/block.h"
#include "core/cuda/tucker_conv/block_shape.h"
#if TESSERA_KERNELS
#include "core/cuda/tucker_conv/mma_step.cuh"
#endif

namespace tessera::cuda {

// kRowTiles x kColumnTiles tiles of 16 x 8 a warp.
template <class T, int kRowTiles, int kColumnTiles>
struct Mma {
  using Storage = T;
  static constexpr int kTileRows = 2 * kRowTiles;
  static constexpr int kTileColumns = 2 * kColumnTiles;
  static constexpr BlockShape kShape{64 * kRowTiles, 16 * kColumnTiles, static_cast<int>(sizeof(T)), true};
  static constexpr int kUnit = sizeof(T) == 2 ? 16 : 8;

  struct State {
    float sum[kRowTiles][kColumnTiles][4];
    int offset[kTileRows];
  };

  TESSERA_INLINE static int row(int thread, int i) {
    return i / 2 * 64 + thread / 32 % 4 * 16 + i % 2 * 8 + thread % 32 / 4;
  }
  TESSERA_INLINE static int column(int thread, int j) {
    return (thread / 128 * kColumnTiles + j / 2) * 8 + thread % 4 * 2 + j % 2;
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

  TESSERA_INLINE static void multiply(int thread, State& state, const T* a, const float* b, int pitch_b, int depth) {
#if TESSERA_ON_DEVICE
    const int quad = thread % 4;
    b += (thread / 128 * kColumnTiles * 8 + thread % 32 / 4) * pitch_b;
    for (int k = 0; k < depth; k += kUnit) {
      unsigned left[kRowTiles][4];
      TESSERA_UNROLL
      for (int i = 0; i < kTileRows; ++i) {
        left[i / 2][i % 2] = MmaStep<T>::left(a + state.offset[i] + k, quad, 0);
        left[i / 2][i % 2 + 2] = MmaStep<T>::left(a + state.offset[i] + k, quad, 1);
      }
      TESSERA_UNROLL
      for (int j = 0; j < kColumnTiles; ++j) {
        const float* const row = b + j * 8 * pitch_b + k;
        const unsigned right[2] = {MmaStep<T>::right(row, quad, 0), MmaStep<T>::right(row, quad, 1)};
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

}  // namespace tessera::cuda
