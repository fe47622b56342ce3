// A block's copies from global to shared memory that bypass the registers.
#pragma once

#include <type_traits>

#include "core/cuda/core_conv/problems.h"
#include "core/cuda/kernel/instructions.cuh"

namespace tessera::cuda::core_conv {

// Copies kWidth floats, or zeros where the copy is outside its source. Both addresses are aligned to the width.
template <int kWidth>
__device__ inline void copy_async(float* shared, const float* source, const Copy& copy) {
  static_assert(kWidth == 1 || kWidth == 4);
  constexpr int kBytes = kWidth * static_cast<int>(sizeof(float));
  const int bytes = copy.inside ? kBytes : 0;
  if constexpr (kWidth == 4) copy_16_async(shared + copy.destination, source + copy.source, bytes);
  else copy_4_async(shared + copy.destination, source + copy.source, bytes);
}

// Does a thread's share of `count` copies of four floats, or of 4 * count copies of one if not `quads`: copy_of(width, item).
template <int kThreads, class CopyOf>
__device__ inline void copy_items(bool quads, int count, float* shared, const float* source, const CopyOf& copy_of) {
  const int thread = static_cast<int>(threadIdx.x);
  if (quads) {
    for (int item = thread; item < count; item += kThreads)
      copy_async<4>(shared, source, copy_of(std::integral_constant<int, 4>(), item));
  } else {
    for (int item = thread; item < 4 * count; item += kThreads)
      copy_async<1>(shared, source, copy_of(std::integral_constant<int, 1>(), item));
  }
}

// Runs the stages of a block through two buffers of kStage floats. copy(stage, buffer) begins the copy of a stage, and meanwhile
// multiply(buffer) works on the stage before it. Every thread calls this.
template <int kStage, class CopyStage, class Multiply>
__device__ inline void run_stages(int begin, int end, float* shared, const CopyStage& copy, const Multiply& multiply) {
  float* buffer = shared;
  float* other = shared + kStage;
  if (begin < end) copy(begin, buffer);
#pragma unroll 1
  for (int stage = begin; stage < end; ++stage) {
    wait_for_copies();
    __syncthreads();  // the stage has arrived, and no thread reads the other buffer any more
    if (stage + 1 < end) copy(stage + 1, other);
    multiply(buffer);
    float* const read = buffer;
    buffer = other;
    other = read;
  }
}

}  // namespace tessera::cuda::core_conv
