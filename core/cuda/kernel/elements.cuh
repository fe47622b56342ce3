// How kernels move elements: several in one access, half types converted in one instruction, and packs of elements as numbers to
// compute with.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "core/cuda/kernel/alignment.h"
#include "core/cuda/kernel/instructions.cuh"
#include "core/half.h"
#include "core/tensor.h"

namespace tessera::cuda {

// The same values as widen() and narrow() of core/compute_type.h, by the instructions for the conversion. NaN stays NaN.
template <class T>
__device__ inline auto number_of(T element) {
  if constexpr (std::is_same_v<T, float16>) {
    return f16_number(element.bits());
  } else if constexpr (std::is_same_v<T, bfloat16>) {
    return static_cast<float>(element);
  } else {
    return element;
  }
}

template <class T, class Number>
__device__ inline T element_of(Number number) {
  if constexpr (std::is_same_v<T, float16>) {
    return float16::from_bits(f16_bits(static_cast<float>(number)));
  } else if constexpr (std::is_same_v<T, bfloat16>) {
    return bfloat16::from_bits(bf16_bits(static_cast<float>(number)));
  } else {
    return static_cast<T>(number);
  }
}

template <std::size_t kBytes> struct RawOf;
template <> struct RawOf<1> { using type = std::uint8_t; };
template <> struct RawOf<2> { using type = std::uint16_t; };
template <> struct RawOf<4> { using type = std::uint32_t; };
template <> struct RawOf<8> { using type = uint2; };
template <> struct RawOf<16> { using type = uint4; };

// Neighbouring elements in memory. A load or store is one access. Its address must be a multiple of the pack's size.
template <class T, int kCount>
struct Pack {
  T elements[kCount];
};

template <int kCount, class T>
__device__ inline Pack<T, kCount> load_pack(const T* from) {
  using Raw = typename RawOf<sizeof(T) * kCount>::type;
  return std::bit_cast<Pack<T, kCount>>(*reinterpret_cast<const Raw*>(from));
}

template <class T, int kCount>
__device__ inline void store_pack(T* to, const Pack<T, kCount>& pack) {
  using Raw = typename RawOf<sizeof(T) * kCount>::type;
  *reinterpret_cast<Raw*>(to) = std::bit_cast<Raw>(pack);
}

// Neighbouring elements as numbers to compute with. Addresses must be aligned to 16 bytes, or to the pack if it is smaller.
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

// Number of elements that one access of 16 bytes moves.
template <class T>
inline constexpr int kWidest = static_cast<int>(16 / sizeof(T));

// Whether every tensor that is defined begins at a multiple of 16 bytes.
template <class... Tensors>
bool all_aligned(const Tensors&... tensors) {
  return (is_aligned(tensors.raw(), 16) && ...);
}

}  // namespace tessera::cuda
