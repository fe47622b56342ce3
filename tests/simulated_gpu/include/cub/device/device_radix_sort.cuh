// CUB's sort of pairs, on the simulated GPU.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/simulated_gpu/stream.h"

namespace cub {

struct DeviceRadixSort {
  // Stable sort by bits begin_bit to end_bit of the keys. Without memory it only reports how much it needs.
  template <class Key, class Value>
  static cudaError_t SortPairs(void* memory, std::size_t& bytes, const Key* keys_in, Key* keys_out, const Value* values_in,
                               Value* values_out, int count, int begin_bit, int end_bit, cudaStream_t stream) {
    constexpr std::size_t kBytes = 1024;
    if (memory == nullptr) {
      bytes = kBytes;
      return cudaSuccess;
    }
    if (bytes < kBytes) return cudaErrorInvalidValue;
    const std::lock_guard lock(tessera::simulated_gpu::gpu_mutex());
    tessera::simulated_gpu::put(stream, [=] {
      std::memset(memory, 0xab, kBytes);
      const auto size = static_cast<std::size_t>(count);
      const auto part = [=](Key key) { return (std::uint64_t{key} & ((std::uint64_t{1} << end_bit) - 1)) >> begin_bit; };
      std::vector<std::pair<Key, Value>> pairs;
      for (std::size_t i = 0; i < size; ++i) pairs.emplace_back(keys_in[i], values_in[i]);
      std::stable_sort(pairs.begin(), pairs.end(), [&](const auto& a, const auto& b) { return part(a.first) < part(b.first); });
      for (std::size_t i = 0; i < size; ++i) std::tie(keys_out[i], values_out[i]) = pairs[i];
    });
    return cudaSuccess;
  }
};

}  // namespace cub
