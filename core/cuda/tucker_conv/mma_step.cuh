// One instruction of the tensor cores, and how a lane reads its operands for it: m16n8k8 for tf32, m16n8k16 for bf16 and f16.
#pragma once

#include "core/half.h"

namespace tessera::cuda {

// One step of D += A B. float: tf32.
template <class T>
struct MmaStep;
template <>
struct MmaStep<float> {
  static constexpr int kDepth = 8;
  __device__ __forceinline__ static unsigned round(float value) {
    unsigned bits;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(value));
    return bits;
  }
  __device__ __forceinline__ static unsigned left(const float* row, int quad, int half) { return round(row[quad + 4 * half]); }
  __device__ __forceinline__ static unsigned right(const float* row, int quad, int half) { return round(row[quad + 4 * half]); }
  __device__ __forceinline__ static void run(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  }
};

template <class T>
struct HalfStep {
  static constexpr int kDepth = 16;
  __device__ __forceinline__ static unsigned left(const T* row, int quad, int half) {
    return *reinterpret_cast<const unsigned*>(row + 2 * quad + 8 * half);
  }
};
template <>
struct MmaStep<bfloat16> : HalfStep<bfloat16> {
  __device__ __forceinline__ static unsigned right(const float* row, int quad, int half) {
    const float2 pair = *reinterpret_cast<const float2*>(row + 2 * quad + 8 * half);
    unsigned bits;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(pair.y), "f"(pair.x));
    return bits;
  }
  __device__ __forceinline__ static void run(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  }
};
template <>
struct MmaStep<float16> : HalfStep<float16> {
  __device__ __forceinline__ static unsigned right(const float* row, int quad, int half) {
    const float2 pair = *reinterpret_cast<const float2*>(row + 2 * quad + 8 * half);
    unsigned bits;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(pair.y), "f"(pair.x));
    return bits;
  }
  __device__ __forceinline__ static void run(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  }
};

}  // namespace tessera::cuda
