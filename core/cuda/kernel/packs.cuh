// Packs of elements, loaded and stored at once and computed with as numbers.
#pragma once

#include "core/cuda/kernel/elements.cuh"
#include "core/tensor.h"

namespace tessera::cuda {

// Neighbours as numbers to compute with. Addresses need the alignment of 16 bytes, or of the pack where that is less.
template <class T, int N>
struct Numbers {
  using Number = decltype(number_of(T()));
  static constexpr int kChunk = sizeof(T) * N > 16 ? static_cast<int>(16 / sizeof(T)) : N;
  Number at[N];

  __device__ static Numbers load(const T* from) {
    Numbers numbers;
#pragma unroll
    for (int first = 0; first < N; first += kChunk) {
      const Pack<T, kChunk> pack = load_pack<kChunk>(from + first);
#pragma unroll
      for (int i = 0; i < kChunk; ++i) numbers.at[first + i] = number_of(pack.elements[i]);
    }
    return numbers;
  }
  __device__ void store(T* to) const {
#pragma unroll
    for (int first = 0; first < N; first += kChunk) {
      Pack<T, kChunk> pack;
#pragma unroll
      for (int i = 0; i < kChunk; ++i) pack.elements[i] = element_of<T>(at[first + i]);
      store_pack(to + first, pack);
    }
  }
};

// Elements that one access of 16 bytes moves.
template <class T>
inline constexpr int kWidest = static_cast<int>(16 / sizeof(T));

// Whether each of the tensors that are defined begins where an access of 16 bytes may.
template <class... Tensors>
bool all_aligned(const Tensors&... tensors) {
  return (is_aligned(tensors.raw(), 16) && ...);
}

}  // namespace tessera::cuda
