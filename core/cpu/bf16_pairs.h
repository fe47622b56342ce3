// Operands of products in bf16: pairs of neighbours along the depth, which one instruction multiplies and adds. Included like
// vectors.h; what converts is for the file that is built with AVX512_BF16.
#pragma once

#include <immintrin.h>

#include <bit>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "core/cpu/bf16_pair.h"
#include "core/cpu/vectors.h"

namespace tessera::cpu {
namespace {

// How many of a product's steps `depth` elements are.
template <class T>
constexpr std::int64_t steps_of(std::int64_t depth) {
  return std::is_same_v<T, Bf16Pair> ? (depth + 1) / 2 : depth;
}

template <int W>
[[gnu::always_inline]] inline Vec<W> load_operand(const float* from) {
  return load<W>(from);
}
template <int W>
[[gnu::always_inline]] inline Vec<W> load_operand(const Bf16Pair* from) {  // a pair in the bits of each lane
  return load<W>(reinterpret_cast<const float*>(from));
}

// Fused by name, so that a build without optimisation rounds once too.
template <int W>
[[gnu::always_inline]] inline void add_product(Vec<W>& sum, float factor, const Vec<W>& x) {
#ifdef __AVX512F__
  if constexpr (W == 16) {
    const __m512 added =
        _mm512_fmadd_ps(_mm512_set1_ps(factor), reinterpret_cast<const __m512&>(x), reinterpret_cast<const __m512&>(sum));
    sum = reinterpret_cast<const Vec<W>&>(added);
  }
#endif
  if constexpr (W == 8) {
    const __m256 added =
        _mm256_fmadd_ps(_mm256_set1_ps(factor), reinterpret_cast<const __m256&>(x), reinterpret_cast<const __m256&>(sum));
    sum = reinterpret_cast<const Vec<W>&>(added);
  }
}
// The two products of a lane are added one after the other, without rounding between; denormal numbers count as 0.
template <int W>
[[gnu::always_inline]] inline void add_product(Vec<W>& sum, Bf16Pair factor, const Vec<W>& x) {
  const IntVec<W> factors = IntVec<W>{} + std::bit_cast<std::int32_t>(factor);
  const __m512 added = _mm512_dpbf16_ps(reinterpret_cast<const __m512&>(sum), reinterpret_cast<const __m512bh&>(factors),
                                        reinterpret_cast<const __m512bh&>(x));
  sum = reinterpret_cast<const Vec<W>&>(added);
}

// to [count][pitch / 2]: neighbours in a row of [count][pitch]. Only the first `columns`, a multiple of W, are converted.
template <int W>
void pair_rows(const float* rows, std::int64_t count, std::int64_t columns, std::int64_t pitch, Bf16Pair* to) {
  for (std::int64_t i = 0; i < count; ++i) {
    for (std::int64_t c = 0; c < columns; c += W) {
      const Vec<W> v = load<W>(rows + i * pitch + c);
      const __m256bh halves = _mm512_cvtneps_pbh(reinterpret_cast<const __m512&>(v));
      std::memcpy(static_cast<void*>(to + (i * pitch + c) / 2), &halves, sizeof halves);
    }
  }
}

// to [count / 2, rounded up][pitch]: neighbouring rows of [count][pitch], the last one with zeros where it has none.
template <int W>
void pair_down(const float* rows, std::int64_t count, std::int64_t columns, std::int64_t pitch, Bf16Pair* to) {
  __m512i order;  // of the halves of two registers side by side
  {
    std::uint16_t places[2 * W];
    for (int i = 0; i < 2 * W; ++i) places[i] = static_cast<std::uint16_t>(i / 2 + (i % 2) * W);
    std::memcpy(&order, places, sizeof order);
  }
  for (std::int64_t i = 0; i < count; i += 2) {
    for (std::int64_t c = 0; c < columns; c += W) {
      const Vec<W> first = load<W>(rows + i * pitch + c);
      const Vec<W> second = i + 1 < count ? load<W>(rows + (i + 1) * pitch + c) : Vec<W>{};
      const __m512bh both = _mm512_cvtne2ps_pbh(reinterpret_cast<const __m512&>(second), reinterpret_cast<const __m512&>(first));
      const __m512i pairs = _mm512_permutexvar_epi16(order, reinterpret_cast<const __m512i&>(both));
      std::memcpy(static_cast<void*>(to + i / 2 * pitch + c), &pairs, sizeof pairs);
    }
  }
}

}  // namespace
}  // namespace tessera::cpu
