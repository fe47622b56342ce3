// The elements of one tensor that a thread of the kernels over many tensors holds; see optim/multi_tensor.cuh.
#pragma once

#include <cstdint>

#include "core/cuda/kernel/elements.cuh"

namespace tessera::cuda {

inline constexpr int kManyThreads = 256;
inline constexpr int kManyItems = 16;  // elements of a thread
inline constexpr std::int64_t kManyChunk = std::int64_t{kManyThreads} * kManyItems;  // of a block

// Which elements of its tensor a thread holds.
struct Held {
  std::int64_t begin;
  std::int64_t left;  // from begin to the tensor's end
  bool packs;
};

// kWidth elements of the widest type are 16 bytes; the same for all tensors of an entry, so that values[j] are of one element.
template <int kWidth, class T>
__device__ inline void load_held(const T* from, const Held& held, T (&values)[kManyItems]) {
  if (held.packs) {
#pragma unroll
    for (int u = 0; u < kManyItems / kWidth; ++u) {
      const auto pack = load_pack<kWidth>(from + held.begin + (u * kManyThreads + threadIdx.x) * kWidth);
#pragma unroll
      for (int j = 0; j < kWidth; ++j) values[u * kWidth + j] = pack.elements[j];
    }
    return;
  }
#pragma unroll
  for (int j = 0; j < kManyItems; ++j) {
    const std::int64_t at = j * kManyThreads + threadIdx.x;
    values[j] = at < held.left ? from[held.begin + at] : T(0);
  }
}

template <int kWidth, class T>
__device__ inline void store_held(T* to, const Held& held, const T (&values)[kManyItems]) {
  if (held.packs) {
#pragma unroll
    for (int u = 0; u < kManyItems / kWidth; ++u) {
      Pack<T, kWidth> pack;
#pragma unroll
      for (int j = 0; j < kWidth; ++j) pack.elements[j] = values[u * kWidth + j];
      store_pack(to + held.begin + (u * kManyThreads + threadIdx.x) * kWidth, pack);
    }
    return;
  }
#pragma unroll
  for (int j = 0; j < kManyItems; ++j) {
    const std::int64_t at = j * kManyThreads + threadIdx.x;
    if (at < held.left) to[held.begin + at] = values[j];
  }
}

// A null mask keeps everything.
template <int kWidth>
__device__ inline void load_mask(const std::uint8_t* mask, const Held& held, std::uint8_t (&kept)[kManyItems]) {
  if (mask != nullptr) return load_held<kWidth>(mask, held, kept);
#pragma unroll
  for (int j = 0; j < kManyItems; ++j) kept[j] = 1;
}

}  // namespace tessera::cuda
