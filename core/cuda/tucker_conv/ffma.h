// Products on the f32 units, of a pass (chain.h) and of a correlation (correlate.h). A block has 256 threads, each with its sums
// in registers; both operands lie in shared memory with their channels contiguous, so that a thread reads four of them at a time.
#pragma once

#include "core/cuda/tucker_conv/shapes.h"

namespace tessera::cuda {

struct alignas(16) FourFloats {
  float at[4];
};

// A block of a pass: each thread has kTileRows x kTileColumns sums.
template <int kTileRows_, int kThreadColumns, int kTileColumns_ = 4>
struct Ffma {
  using Storage = float;
  static constexpr int kTileRows = kTileRows_;
  static constexpr int kTileColumns = kTileColumns_;
  static constexpr int kThreadRows = kBlockThreads / kThreadColumns;
  static constexpr BlockShape kShape{.rows = kThreadRows * kTileRows, .columns = kThreadColumns * kTileColumns,
                                     .element_bytes = 4, .tensor_cores = false};
  static constexpr int kUnit = 4;  // channels that one step takes

  struct State {
    float sum[kTileRows][kTileColumns];
    int offset[kTileRows];  // of the thread's rows in the left operand, in elements
  };

  TESSERA_INLINE static int thread_row(int thread) { return thread / kThreadColumns; }
  TESSERA_INLINE static int thread_column(int thread) { return thread % kThreadColumns; }
  // Row and column in the block of a thread's sum (i, j).
  TESSERA_INLINE static int row(int thread, int i) { return thread_row(thread) + i * kThreadRows; }
  TESSERA_INLINE static int column(int thread, int j) { return thread_column(thread) + j * kThreadColumns; }
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
    b += thread_column(thread) * pitch_b;
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

// A correlation's tile: nine slots of 32 x 32 sums, 36 to a thread, each over the 32 pixels of the tile. Pixel (r, c) lies at
// r * step_h + c * step_w in `right`, where a slot begins at its offset. A warp has the 32 channels of `right`, one to a lane,
// and four of `left`.
struct CorrelateFfma {
  using Storage = float;
  TESSERA_INLINE static int first_row(int thread) {
    const int warp = thread / 32;
    return warp * 4;
  }
  TESSERA_INLINE static int lane(int thread) { return thread % 32; }
  // Channels of sum e of a thread: of `left`, and of `right`.
  TESSERA_INLINE static int row(int thread, int e) { return first_row(thread) + e; }
  TESSERA_INLINE static int column(int thread, int) { return lane(thread); }

  TESSERA_INLINE static void multiply(int thread, CorrelateState& state, const float* left, const float* right, int step_h,
                                      int step_w) {
    left += first_row(thread);
    right += lane(thread);
    TESSERA_UNROLL_BY(2)
    for (int p = 0; p < kCorrelatePixels; ++p) {
      const FourFloats a = *reinterpret_cast<const FourFloats*>(left + p * kPitchOfA);
      const float* const pixel = right + p / kCorrelateW * step_h + p % kCorrelateW * step_w;
      TESSERA_UNROLL
      for (int slot = 0; slot < kSlots; ++slot) {
        const float b = pixel[state.offset[slot]];
        TESSERA_UNROLL
        for (int e = 0; e < 4; ++e) state.sum[slot][e] += a.at[e] * b;
      }
    }
  }
};

}  // namespace tessera::cuda
