// One step D += A B by a warp on tensor cores: m16n8k16 for bf16 and f16, m16n8k8 for f32 rounded to tf32. The PTX ISA, section
// "Matrix Fragments for mma", gives the places of a lane's operands and sums. A warp is eight groups of four lanes.
#pragma once

#include <type_traits>

#include "core/cuda/kernel/instructions.cuh"
#include "core/half.h"

namespace tessera::cuda {

// What lane `lane` of a group reads of a row of A (`left`) or of a column of B (`right`, weights in f32, rounded here), in the
// first or second half of the step's depth. Either function serves both operands if neighbouring elements are along the depth.
// T is bf16 or f16; float stands for tf32.
template <class T>
struct MmaStep {
  static constexpr bool kBf16 = std::is_same_v<T, bfloat16>;
  __device__ __forceinline__ static unsigned left(const T* row, int lane, int half) {
    return *reinterpret_cast<const unsigned*>(row + 2 * lane + 8 * half);
  }
  __device__ __forceinline__ static unsigned right(const float* row, int lane, int half) {
    const float2 weights = *reinterpret_cast<const float2*>(row + 2 * lane + 8 * half);
    if constexpr (kBf16)
      return bf16_pair(weights.x, weights.y);
    else
      return f16_pair(weights.x, weights.y);
  }
  __device__ __forceinline__ static void run(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    if constexpr (kBf16)
      mma_bf16(d, a, b);
    else
      mma_f16(d, a, b);
  }
};
template <>
struct MmaStep<float> {
  __device__ __forceinline__ static unsigned round(float value) { return tf32_bits(value); }
  __device__ __forceinline__ static unsigned left(const float* row, int lane, int half) { return round(row[lane + 4 * half]); }
  __device__ __forceinline__ static unsigned right(const float* row, int lane, int half) { return left(row, lane, half); }
  __device__ __forceinline__ static void run(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) { mma_tf32(d, a, b); }
};

}  // namespace tessera::cuda
