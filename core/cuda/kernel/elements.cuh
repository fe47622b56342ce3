// Elements as kernels move them: several in one access, and half types converted in one instruction.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "core/cuda/kernel/alignment.h"
#include "core/cuda/kernel/instructions.cuh"
#include "core/half.h"

namespace tessera::cuda {

// What widen() and narrow() of core/compute_type.h give, by the instructions for it. NaN stays NaN.
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

// Neighbours in memory. Loads and stores are one access each, and need the address to be a multiple of the pack's size.
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

}  // namespace tessera::cuda
