// A block's copies from global to shared memory that pass by the registers.
#pragma once

#include "core/cuda/core_conv/problem.h"
#include "core/cuda/instructions.cuh"

namespace tessera::cuda::core_conv {

// kWidth floats; zeros where the copy is not inside its source. Both ends are aligned to the width.
template <int kWidth>
__device__ inline void copy_async(float* shared, const float* source, const Copy& copy) {
  static_assert(kWidth == 1 || kWidth == 4);
  constexpr int kBytes = kWidth * static_cast<int>(sizeof(float));
  const int bytes = copy.inside ? kBytes : 0;
  if constexpr (kWidth == 4) copy_16_async(shared + copy.destination, source + copy.source, bytes);
  else copy_4_async(shared + copy.destination, source + copy.source, bytes);
}

}  // namespace tessera::cuda::core_conv
