// Vectors of W floats. Included only by files that are built for one instruction set each; W tells their instances apart, and
// each such file has its own copy of what is here.
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>
#include <utility>

#include "core/half.h"

namespace tessera::cpu {
namespace {

template <int W>
struct FloatVector {
  typedef float type __attribute__((vector_size(4 * W)));  // the attribute needs a declarator: no alias
  typedef std::int32_t lanes __attribute__((vector_size(4 * W)));
  typedef std::uint32_t bits __attribute__((vector_size(4 * W)));
};
template <int W>
using Vec = typename FloatVector<W>::type;
template <int W>
using IntVec = typename FloatVector<W>::lanes;

template <int W>
[[gnu::always_inline]] inline Vec<W> load(const float* from) {
  Vec<W> v;
  std::memcpy(&v, from, sizeof v);
  return v;
}

template <int W>
[[gnu::always_inline]] inline void store(const Vec<W>& v, float* to) {
  std::memcpy(to, &v, sizeof v);
}

// bf16 is the upper half of an f32. Intrinsics, because GCC's own conversions between 16 and 32 bits take twice the instructions.
[[gnu::always_inline]] inline Vec<8> widened(const __m128i& halves) {
  const __m256 v = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 16));
  return reinterpret_cast<const Vec<8>&>(v);
}
#ifdef __AVX512F__
[[gnu::always_inline]] inline Vec<16> widened(const __m256i& halves) {
  const __m512i all = _mm512_maskz_cvtepu16_epi32(__mmask16(-1), halves);
  const __m512 v = _mm512_castsi512_ps(_mm512_maskz_slli_epi32(__mmask16(-1), all, 16));
  return reinterpret_cast<const Vec<16>&>(v);
}
#endif
template <int W>
[[gnu::always_inline]] inline Vec<W> load(const bfloat16* from) {
#ifdef __AVX512F__
  if constexpr (W == 16) return widened(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
#endif
  if constexpr (W == 8) return widened(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
}

// Rounds to nearest, ties to even; NaN stays NaN.
template <int W>
[[gnu::always_inline]] inline auto upper_halves(const Vec<W>& v) {
  using Bits = typename FloatVector<W>::bits;
  Bits bits;
  std::memcpy(&bits, &v, sizeof bits);
  const Bits upper = bits >> 16;
  const Bits nearest = (bits + 0x7fff + (upper & 1)) >> 16;
  const Bits chosen = v != v ? upper | 0x40 : nearest;
#ifdef __AVX512F__
  if constexpr (W == 16) return _mm512_maskz_cvtepi32_epi16(__mmask16(-1), reinterpret_cast<const __m512i&>(chosen));
#endif
  if constexpr (W == 8) {
    const __m256i& all = reinterpret_cast<const __m256i&>(chosen);
    return _mm_packus_epi32(_mm256_castsi256_si128(all), _mm256_extracti128_si256(all, 1));
  }
}
template <int W>
[[gnu::always_inline]] inline void store(const Vec<W>& v, bfloat16* to) {
  const auto halves = upper_halves<W>(v);
  std::memcpy(static_cast<void*>(to), &halves, sizeof halves);
}

// All lanes joined, halves with halves.
template <int W, class Join>
[[gnu::always_inline]] inline float joined(const Vec<W>& v, const Join& join) {
  if constexpr (W == 2) {
    return join(v[0], v[1]);
  } else {
    Vec<W / 2> half[2];
    std::memcpy(half, &v, sizeof v);
    return joined<W / 2>(join(half[0], half[1]), join);
  }
}
template <int W>
[[gnu::always_inline]] inline float lane_sum(const Vec<W>& v) {
  return joined<W>(
      v, [](const auto& a, const auto& b) __attribute__((always_inline)) { return a + b; });
}
// The halves of v added, and the halves of that, down to four lanes, as lane_sum() does it.
template <int W>
[[gnu::always_inline]] inline Vec<4> four_lanes(const Vec<W>& v) {
  if constexpr (W == 4) {
    return v;
  } else {
    Vec<W / 2> half[2];
    std::memcpy(half, &v, sizeof v);
    return four_lanes<W / 2>(half[0] + half[1]);
  }
}
// The lane sums of four vectors, each added in the order of lane_sum().
template <int W>
[[gnu::always_inline]] inline Vec<4> lane_sums(const Vec<W> (&v)[4]) {
  const __m128 a = four_lanes<W>(v[0]), b = four_lanes<W>(v[1]), c = four_lanes<W>(v[2]), d = four_lanes<W>(v[3]);
  const __m128 ab = _mm_add_ps(_mm_unpacklo_ps(a, b), _mm_unpackhi_ps(a, b));  // lanes 0 + 2 of both, then lanes 1 + 3
  const __m128 cd = _mm_add_ps(_mm_unpacklo_ps(c, d), _mm_unpackhi_ps(c, d));
  return _mm_add_ps(_mm_movelh_ps(ab, cd), _mm_movehl_ps(cd, ab));
}
template <int W>
[[gnu::always_inline]] inline float largest_lane(const Vec<W>& v) {  // any lane where one is NaN
  return joined<W>(
      v, [](const auto& a, const auto& b) __attribute__((always_inline)) { return a > b ? a : b; });
}

// Lane i is lane From::at(i) of a and, from W on, of b.
template <int W, class From>
[[gnu::always_inline]] inline Vec<W> shuffled(const Vec<W>& a, const Vec<W>& b) {
  return [&]<int... I>(std::integer_sequence<int, I...>) __attribute__((always_inline)) {
    return __builtin_shufflevector(a, b, From::at(I)...);
  }
  (std::make_integer_sequence<int, W>());
}

// The same four floats again and again, and lane K of each four in all of its lanes: four numbers spread out by one load.
template <int W>
[[gnu::always_inline]] inline Vec<W> load_fours(const float* from) {
  const __m128 four = _mm_loadu_ps(from);
#ifdef __AVX512F__
  if constexpr (W == 16) {
    const __m512 all = _mm512_maskz_broadcast_f32x4(__mmask16(-1), four);
    return reinterpret_cast<const Vec<16>&>(all);
  }
#endif
  if constexpr (W == 8) {
    const __m256 all = _mm256_set_m128(four, four);
    return reinterpret_cast<const Vec<8>&>(all);
  }
}
template <int K>
struct LaneOfFours {
  static constexpr int at(int lane) { return lane / 4 * 4 + K; }
};
template <int W, int K>
[[gnu::always_inline]] inline Vec<W> lane_of_fours(const Vec<W>& v) {
  return shuffled<W, LaneOfFours<K>>(v, v);
}

// Takes the even blocks of Step lanes of a and b: a's go to even blocks, b's to odd ones. SecondBlocks takes the odd blocks.
template <int W, int Step>
struct FirstBlocks {
  static constexpr int at(int lane) { return (lane & Step) == 0 ? lane : W + lane - Step; }
};
template <int W, int Step>
struct SecondBlocks {
  static constexpr int at(int lane) { return (lane & Step) == 0 ? lane + Step : W + lane; }
};

// Exchanges rows and lanes of v by exchanging blocks of 1, 2, 4, ... elements.
template <int W, int Step = 1>
[[gnu::always_inline]] inline void transpose(Vec<W> (&v)[W]) {
  if constexpr (Step < W) {
#pragma GCC unroll 16
    for (int i = 0; i < W; ++i) {
      if ((i & Step) != 0) continue;
      const Vec<W> a = v[i], b = v[i + Step];
      v[i] = shuffled<W, FirstBlocks<W, Step>>(a, b);
      v[i + Step] = shuffled<W, SecondBlocks<W, Step>>(a, b);
    }
    transpose<W, 2 * Step>(v);
  }
}

}  // namespace
}  // namespace tessera::cpu
