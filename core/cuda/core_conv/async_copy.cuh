// Copies from global to shared memory that pass by the registers (cp.async of sm_80).
#pragma once

#include <cstdint>

#include "core/cuda/core_conv/problem.h"

namespace tessera::cuda::core_conv {

// kWidth floats; zeros where the copy is not inside its source. Both ends are aligned to the width.
template <int kWidth>
__device__ inline void copy_async(float* shared, const float* source, const Copy& copy) {
  static_assert(kWidth == 1 || kWidth == 4);
  constexpr int kBytes = kWidth * static_cast<int>(sizeof(float));
  const auto destination = static_cast<std::uint32_t>(__cvta_generic_to_shared(shared + copy.destination));
  const int bytes = copy.inside ? kBytes : 0;
  if constexpr (kWidth == 4) {  // for the L2 cache only: what is read again is in shared memory
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(destination), "l"(source + copy.source), "r"(bytes)
                 : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(destination), "l"(source + copy.source), "r"(bytes)
                 : "memory");
  }
}

// Of this thread's copies; those of the others are there behind a barrier.
__device__ inline void wait_for_copies() { asm volatile("cp.async.wait_all;" ::: "memory"); }

}  // namespace tessera::cuda::core_conv
