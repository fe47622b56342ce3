// Elements of f32, f64, bf16 and f16 in the GPU's memory, read and written as double; f32 also as what products in tf32 read.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <vector>

#include "core/half.h"

namespace tessera::simulated_gpu {

enum class Number { f32, tf32, f64, bf16, f16 };

// Ten bits of fraction; ties away from zero. NaN and infinity stay what they are.
inline unsigned tf32_bits(float value) {
  const auto bits = std::bit_cast<unsigned>(value);
  return std::isfinite(value) ? (bits + 0x1000U) & ~0x1fffU : bits;
}

inline double load(Number type, const void* from, std::size_t at) {
  switch (type) {
    case Number::f32: return static_cast<double>(static_cast<const float*>(from)[at]);
    case Number::tf32: return static_cast<double>(std::bit_cast<float>(tf32_bits(static_cast<const float*>(from)[at])));
    case Number::f64: return static_cast<const double*>(from)[at];
    case Number::bf16: return static_cast<double>(static_cast<float>(static_cast<const bfloat16*>(from)[at]));
    case Number::f16: return static_cast<double>(static_cast<float>(static_cast<const float16*>(from)[at]));
  }
  return 0;
}

inline void store(Number type, void* to, std::size_t at, double value) {
  switch (type) {
    case Number::tf32:
    case Number::f32: static_cast<float*>(to)[at] = static_cast<float>(value); break;
    case Number::f64: static_cast<double*>(to)[at] = value; break;
    case Number::bf16: static_cast<bfloat16*>(to)[at] = bfloat16(static_cast<float>(value)); break;
    case Number::f16: static_cast<float16*>(to)[at] = float16(static_cast<float>(value)); break;
  }
}

inline std::vector<double> load_all(Number type, const void* from, std::size_t count) {
  std::vector<double> all(count);
  for (std::size_t i = 0; i < count; ++i) all[i] = load(type, from, i);
  return all;
}

}  // namespace tessera::simulated_gpu
