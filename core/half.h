// 16-bit floating-point storage: bfloat16 (8 exponent bits) and float16 (IEEE 754 binary16). Conversions round to
// nearest, ties to even; NaN stays NaN, overflow becomes infinity, float16 keeps subnormals. No arithmetic.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "core/support/host_device.h"

namespace tessera {

class bfloat16 {
 public:
  bfloat16() = default;
  TESSERA_HD explicit bfloat16(float value) noexcept : bits_(round(value)) {}
  TESSERA_HD explicit operator float() const noexcept { return std::bit_cast<float>(static_cast<std::uint32_t>(bits_) << 16); }
  TESSERA_HD std::uint16_t bits() const noexcept { return bits_; }
  TESSERA_HD static bfloat16 from_bits(std::uint16_t bits) noexcept {
    bfloat16 value;
    value.bits_ = bits;
    return value;
  }

 private:
  TESSERA_HD static std::uint16_t round(float value) noexcept {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>((bits >> 16) | 0x40u);  // quiet the NaN
    return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
  }

  std::uint16_t bits_ = 0;
};

class float16 {
 public:
  float16() = default;
  TESSERA_HD explicit float16(float value) noexcept : bits_(round(value)) {}
  TESSERA_HD explicit operator float() const noexcept { return expand(bits_); }
  TESSERA_HD std::uint16_t bits() const noexcept { return bits_; }
  TESSERA_HD static float16 from_bits(std::uint16_t bits) noexcept {
    float16 value;
    value.bits_ = bits;
    return value;
  }

 private:
  TESSERA_HD static std::uint16_t round(float value) noexcept {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000u);
    const std::uint32_t magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return static_cast<std::uint16_t>(sign | 0x7e00u);
    if (magnitude >= 0x477ff000u) return static_cast<std::uint16_t>(sign | 0x7c00u);  // rounds past 65504
    if (magnitude < 0x38800000u) {  // below 2^-14: the float unit rounds to a multiple of 2^-24 for us
      const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
      return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3f000000u));
    }
    const std::uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
    return static_cast<std::uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
  }

  TESSERA_HD static float expand(std::uint16_t bits) noexcept {
    const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
    const std::uint32_t exponent = (bits >> 10) & 0x1fu;
    const std::uint32_t mantissa = bits & 0x3ffu;
    if (exponent == 0x1fu) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
    if (exponent == 0) {
      const float magnitude = std::ldexp(static_cast<float>(mantissa), -24);
      return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(magnitude));
    }
    return std::bit_cast<float>(sign | ((exponent + 112u) << 23) | (mantissa << 13));
  }

  std::uint16_t bits_ = 0;
};

}  // namespace tessera
