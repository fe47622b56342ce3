// The simulated GPU's version of core/cuda/kernel/instructions.cuh. The kernels' sources find it before that header in the
// include path.
#pragma once

#include <cuda_runtime.h>

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <typeinfo>

#include "core/half.h"
#include "tests/simulated_gpu/block.h"
#include "tests/simulated_gpu/numbers.h"
#include "tests/simulated_gpu/stream.h"

namespace tessera::cuda {

template <class... Parameters>
void start_kernel(dim3 grid, dim3 block, std::size_t shared, cudaStream_t stream, void (*kernel)(Parameters...),
                  Parameters... arguments) {
  static_assert((sizeof(Parameters) + ... + 0) <= 32764, "more parameters than a kernel takes");
  const simulated_gpu::Launch launch{grid, block, shared, typeid(kernel).name(), reinterpret_cast<const void*>(kernel)};
  simulated_gpu::start(launch, stream, [=] { kernel(arguments...); });
}

template <class T>
T* dynamic_shared() {
  return static_cast<T*>(simulated_gpu::dynamic_shared());
}

inline void copy_16_async(void* shared, const void* global, int bytes) { simulated_gpu::copy_async(shared, global, 16, bytes); }
inline void copy_4_async(void* shared, const void* global, int bytes) { simulated_gpu::copy_async(shared, global, 4, bytes); }
inline void commit_copies() { simulated_gpu::commit_copies(); }
template <int kNewer>
void wait_for_groups() {
  simulated_gpu::wait_for_groups(kNewer);
}
inline void wait_for_copies() { simulated_gpu::wait_for_copies(); }

inline float f16_number(std::uint16_t bits) { return static_cast<float>(float16::from_bits(bits)); }
inline std::uint16_t f16_bits(float value) { return float16(value).bits(); }
inline std::uint16_t bf16_bits(float value) { return bfloat16(value).bits(); }
inline unsigned bf16_pair(float first, float second) { return bf16_bits(first) | unsigned{bf16_bits(second)} << 16; }
inline unsigned f16_pair(float first, float second) { return f16_bits(first) | unsigned{f16_bits(second)} << 16; }
using simulated_gpu::tf32_bits;

namespace simulated {

struct Fragments {
  unsigned a[4], b[2];
};

// number_of(register, half): element k of a row of A or a column of B, kPerRegister elements to a register. A's registers 0 and 2
// hold row lane / 4, its registers 1 and 3 the row eight below. A's registers 2 and 3 and B's register 1 hold the second half of
// the depth. Within a half, four adjacent lanes share a row. (PTX ISA, "Matrix Fragments for mma.m16n8k8" and "mma.m16n8k16".)
template <int kPerRegister, class Number>
void mma(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2], const Number& number_of) {
  constexpr int kHalf = 4 * kPerRegister;
  const Fragments mine{{a[0], a[1], a[2], a[3]}, {b[0], b[1]}};
  const auto* const lanes = static_cast<const Fragments*>(simulated_gpu::exchange(&mine, sizeof(mine)));
  const int lane = simulated_gpu::lane();
  for (int e = 0; e < 4; ++e) {
    const int row = lane / 4;
    const int column = lane % 4 * 2 + e % 2;
    for (int k = 0; k < 2 * kHalf; ++k) {
      const int quad = k % kHalf / kPerRegister, part = k % kPerRegister, half = k / kHalf;
      const float left = number_of(lanes[row * 4 + quad].a[e / 2 + 2 * half], part);
      const float right = number_of(lanes[column * 4 + quad].b[half], part);
      d[e] += left * right;
    }
  }
}

}  // namespace simulated

inline void mma_tf32(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  simulated::mma<1>(d, a, b, [](unsigned bits, int) { return std::bit_cast<float>(bits & ~0x1fffU); });
}
inline void mma_bf16(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  simulated::mma<2>(d, a, b, [](unsigned bits, int part) {
    return static_cast<float>(bfloat16::from_bits(static_cast<std::uint16_t>(bits >> 16 * part)));
  });
}
inline void mma_f16(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  simulated::mma<2>(d, a, b, [](unsigned bits, int part) { return f16_number(static_cast<std::uint16_t>(bits >> 16 * part)); });
}

}  // namespace tessera::cuda
