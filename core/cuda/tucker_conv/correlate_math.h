// The products of a correlation's tile (correlate.h): nine slots of 32 x 32 sums, 36 to a thread, each over 32 pixels. Pixel
// (r, c) of the tile lies at r * step_h + c * step_w in `right`, of which a slot begins at its offset.
#pragma once

#include "core/cuda/tucker_conv/correlate_shape.h"
#include "core/cuda/tucker_conv/ffma.h"
#include "core/cuda/tucker_conv/mma.h"

namespace tessera::cuda {

struct CorrelateState {
  float sum[kSlots][4];
  int offset[kSlots];
  float bias;
};

TESSERA_INLINE void clear_correlation(CorrelateState& state) {
  state.bias = 0;
  TESSERA_UNROLL
  for (int slot = 0; slot < kSlots; ++slot) {
    TESSERA_UNROLL
    for (int e = 0; e < 4; ++e) state.sum[slot][e] = 0;
  }
}

// On the f32 units: a warp has the 32 channels of `right` and four of `left`.
struct CorrelateFfma {
  using Storage = float;
  using State = CorrelateState;
  TESSERA_INLINE static int row(int thread, int e) { return thread / 32 * 4 + e; }
  TESSERA_INLINE static int column(int thread, int) { return thread % 32; }
  TESSERA_INLINE static void clear(State& state) { clear_correlation(state); }

  TESSERA_INLINE static void multiply(int thread, State& state, const float* left, const float* right, int step_h, int step_w) {
    left += thread / 32 * 4;
    right += thread % 32;
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

// On tensor cores, operands as tf32, which holds every bf16 and f16 number: pixels are the summed axis, and neighbours along it
// do not lie side by side, as 16-bit operands would need them. A warp has 16 x 8 of each slot, a row of the tile is one step.
template <class T>
struct CorrelateMma {
  using Storage = T;
  using State = CorrelateState;
  TESSERA_INLINE static int row(int thread, int e) { return thread / 32 % 2 * 16 + thread % 32 / 4 + e / 2 * 8; }
  TESSERA_INLINE static int column(int thread, int e) { return thread / 64 * 8 + thread % 4 * 2 + e % 2; }
  TESSERA_INLINE static void clear(State& state) { clear_correlation(state); }

  TESSERA_INLINE static void multiply(int thread, State& state, const T* left, const T* right, int step_h, int step_w) {
#if TESSERA_ON_DEVICE
    const int quad = thread % 4;
    left += quad * kPitchOfA + thread / 32 % 2 * 16 + thread % 32 / 4;
    right += quad * step_w + thread / 64 * 8 + thread % 32 / 4;
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
