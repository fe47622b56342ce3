// Kernels over the elements of many tensors, most of which are too small for a separate launch. The launch's parameters hold
// what the kernel needs of each tensor, so that a step copies nothing to the device.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include "core/cuda/kernel/elements.cuh"
#include "core/cuda/kernel/launch.cuh"
#include "core/support/error.h"
#include "core/tensor.h"

namespace tessera::cuda {

inline constexpr int kManyThreads = 256;
inline constexpr int kManyItems = 16;  // elements of one thread
inline constexpr std::int64_t kManyChunk = std::int64_t{kManyThreads} * kManyItems;  // elements of one block

// The part of a tensor from which a thread takes its elements.
struct ThreadShare {
  std::int64_t begin;
  std::int64_t left;  // from begin to the tensor's end
  bool packs;
};

// kWidth elements of the widest type are 16 bytes. All tensors of an entry use one width, so that values[j] are of one element.
template <int kWidth, class T>
__device__ inline void load_share(const T* from, const ThreadShare& share, T (&values)[kManyItems]) {
  if (share.packs) {
#pragma unroll
    for (int u = 0; u < kManyItems / kWidth; ++u) {
      const auto pack = load_pack<kWidth>(from + share.begin + (u * kManyThreads + threadIdx.x) * kWidth);
#pragma unroll
      for (int j = 0; j < kWidth; ++j) values[u * kWidth + j] = pack.elements[j];
    }
    return;
  }
#pragma unroll
  for (int j = 0; j < kManyItems; ++j) {
    const std::int64_t at = j * kManyThreads + threadIdx.x;
    values[j] = at < share.left ? from[share.begin + at] : T(0);
  }
}

template <int kWidth, class T>
__device__ inline void store_share(T* to, const ThreadShare& share, const T (&values)[kManyItems]) {
  if (share.packs) {
#pragma unroll
    for (int u = 0; u < kManyItems / kWidth; ++u) {
      Pack<T, kWidth> pack;
#pragma unroll
      for (int j = 0; j < kWidth; ++j) pack.elements[j] = values[u * kWidth + j];
      store_pack(to + share.begin + (u * kManyThreads + threadIdx.x) * kWidth, pack);
    }
    return;
  }
#pragma unroll
  for (int j = 0; j < kManyItems; ++j) {
    const std::int64_t at = j * kManyThreads + threadIdx.x;
    if (at < share.left) to[share.begin + at] = values[j];
  }
}

// A null mask keeps every element.
template <int kWidth>
__device__ inline void load_mask(const std::uint8_t* mask, const ThreadShare& share, std::uint8_t (&kept)[kManyItems]) {
  if (mask != nullptr) return load_share<kWidth>(mask, share, kept);
#pragma unroll
  for (int j = 0; j < kManyItems; ++j) kept[j] = 1;
}

// Every Entry has `std::int64_t count` and `bool packs`: whether its addresses allow packs of 16 bytes (shorter packs of a mask).
// ends[i]: number of blocks of entries 0 to i. A launch takes 32,764 bytes of parameters.
template <class Entry>
struct Many {
  static constexpr int kMost = 320;
  int count = 0;
  std::uint32_t ends[kMost];
  Entry entries[kMost];
};

template <class Entry>
__device__ inline const Entry& find_entry(const Many<Entry>& many, ThreadShare& share) {
  int low = 0;
  int high = many.count - 1;
  while (low < high) {
    const int middle = (low + high) / 2;
    if (blockIdx.x < many.ends[middle]) high = middle;
    else low = middle + 1;
  }
  const Entry& entry = many.entries[low];
  share.begin = std::int64_t{blockIdx.x - (low == 0 ? 0 : many.ends[low - 1])} * kManyChunk;
  share.left = entry.count - share.begin;
  share.packs = entry.packs && share.left >= kManyChunk;
  return entry;
}

template <class T>
inline constexpr int kManyWidth = static_cast<int>(16 / sizeof(T));

template <class T>
T* data_or_null(const Tensor& tensor) {
  return tensor.defined() ? tensor.data<T>() : nullptr;
}

// Whether all addresses allow packs of 16 bytes of T. A mask's packs have as many elements, but a quarter or eighth of the bytes.
template <class T>
bool takes_packs(std::initializer_list<const void*> tensors, const void* mask = nullptr) {
  for (const void* const tensor : tensors) {
    if (!is_aligned(tensor, 16)) return false;
  }
  return is_aligned(mask, 16 / sizeof(T));
}

// Calls run(many, blocks) for groups of the non-empty entries, each as large as a launch takes.
template <class Entry, class Run>
void for_each_many(std::span<const Entry> entries, Run&& run) {
  Many<Entry> many;
  static_assert(sizeof(many) <= 32'000, "leaves room for the kernel's other parameters");
  std::uint32_t blocks = 0;
  const auto flush = [&] {
    if (many.count > 0) run(many, blocks);
    many.count = 0;
    blocks = 0;
  };
  for (const Entry& entry : entries) {
    const std::int64_t wanted = (entry.count + kManyChunk - 1) / kManyChunk;
    if (wanted == 0) continue;
    TESSERA_CHECK(wanted < (std::int64_t{1} << 30), ShapeError, "update: a tensor has ", entry.count,
                  " elements; needs fewer than 2^42");
    if (many.count == Many<Entry>::kMost || blocks + wanted >= (std::int64_t{1} << 31)) flush();
    blocks += static_cast<std::uint32_t>(wanted);
    many.entries[many.count] = entry;
    many.ends[many.count++] = blocks;
  }
  flush();
}

}  // namespace tessera::cuda
