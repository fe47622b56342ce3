// A block of a matrix product on the f32 units: 256 threads, each with kTileRows x kTileColumns sums in registers. Both operands
// lie in shared memory with their channels contiguous, so that a thread reads four of them at a time.
#pragma once

#include "core/cuda/tucker_conv/block.h"
#include "core/cuda/tucker_conv/block_shape.h"

namespace tessera::cuda {

struct alignas(16) FourFloats {
  float at[4];
};

template <int kTileRows_, int kThreadColumns, int kTileColumns_ = 4>
struct Ffma {
  using Storage = float;
  static constexpr int kTileRows = kTileRows_;
  static constexpr int kTileColumns = kTileColumns_;
  static constexpr int kThreadRows = kChainThreads / kThreadColumns;
  static constexpr BlockShape kShape{kThreadRows * kTileRows, kThreadColumns * kTileColumns, 4, false};
  static constexpr int kUnit = 4;  // channels that one step takes

  struct State {
    float sum[kTileRows][kTileColumns];
    int offset[kTileRows];  // of the thread's rows in the left operand, in elements
  };

  TESSERA_INLINE static int row(int thread, int i) { return thread / kThreadColumns + i * kThreadRows; }
  TESSERA_INLINE static int column(int thread, int j) { return thread % kThreadColumns + j * kThreadColumns; }
  TESSERA_INLINE static float value(const State& state, int i, int j) { return state.sum[i][j]; }
  TESSERA_INLINE static void clear(State& state) {
    TESSERA_UNROLL
    for (int i = 0; i < kTileRows; ++i) {
      TESSERA_UNROLL
      for (int j = 0; j < kTileColumns; ++j) state.sum[i][j] = 0;
    }
  }

  // sum[i][j] += sum over k < depth of a[offset[i] + k] b[column j][k]; depth is a multiple of kUnit.
  TESSERA_INLINE static void multiply(int thread, State& state, const float* a, const float* b, int pitch_b, int depth) {
    b += thread % kThreadColumns * pitch_b;
    TESSERA_UNROLL_BY(kTileRows >= 4 ? 1 : 2)
    for (int k = 0; k < depth; k += kUnit) {
      FourFloats right[kTileColumns];
      TESSERA_UNROLL
      for (int j = 0; j < kTileColumns; ++j) right[j] = read(b + j * kThreadColumns * pitch_b + k);
      TESSERA_UNROLL
      for (int i = 0; i < kTileRows; ++i) {
        const FourFloats left = read(a + state.offset[i] + k);
        TESSERA_UNROLL
        for (int j = 0; j < kTileColumns; ++j) {
          TESSERA_UNROLL
          for (int e = 0; e < 4; ++e) state.sum[i][j] += left.at[e] * right[j].at[e];
        }
      }
    }
  }

 private:
  TESSERA_INLINE static FourFloats read(const float* from) { return *reinterpret_cast<const FourFloats*>(from); }
};

}  // namespace tessera::cuda
