// How a lane reads its operands for one step of the tensor cores: m16n8k8 for tf32, m16n8k16 for bf16 and f16.
#pragma once

#include "core/cuda/kernel/instructions.cuh"
#include "core/half.h"

namespace tessera::cuda {

// One step of D += A B. float: tf32.
template <class T>
struct MmaStep;
template <>
struct MmaStep<float> {
  __device__ __forceinline__ static unsigned round(float value) { return tf32_bits(value); }
  __device__ __forceinline__ static unsigned left(const float* row, int quad, int half) { return round(row[quad + 4 * half]); }
  __device__ __forceinline__ static unsigned right(const float* row, int quad, int half) { return round(row[quad + 4 * half]); }
  __device__ __forceinline__ static void run(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) { mma_tf32(d, a, b); }
};

template <class T>
struct HalfStep {
  __device__ __forceinline__ static unsigned left(const T* row, int quad, int half) {
    return *reinterpret_cast<const unsigned*>(row + 2 * quad + 8 * half);
  }
  __device__ __forceinline__ static float2 pair(const float* row, int quad, int half) {
    return *reinterpret_cast<const float2*>(row + 2 * quad + 8 * half);
  }
};
template <>
struct MmaStep<bfloat16> : HalfStep<bfloat16> {
  __device__ __forceinline__ static unsigned right(const float* row, int quad, int half) {
    const float2 numbers = pair(row, quad, half);
    return bf16_pair(numbers.x, numbers.y);
  }
  __device__ __forceinline__ static void run(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) { mma_bf16(d, a, b); }
};
template <>
struct MmaStep<float16> : HalfStep<float16> {
  __device__ __forceinline__ static unsigned right(const float* row, int quad, int half) {
    const float2 numbers = pair(row, quad, half);
    return f16_pair(numbers.x, numbers.y);
  }
  __device__ __forceinline__ static void run(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) { mma_f16(d, a, b); }
};

}  // namespace tessera::cuda
