// Functions of vectors of W floats, to a few units in the last place; NaN stays NaN. Included like core/cpu/vectors.h.
#pragma once

#include <immintrin.h>

#include "core/cpu/vectors.h"

namespace tessera::cpu {
namespace {

// exp(x) of an x that is above 0 by rounding at most: 2^n 2^f with n + f = x log2(e), |f| <= 1/2, and 2^f by a polynomial fitted
// for the least relative error, 9e-8. Rounded, the error is 2e-7 and |x| 8e-8 of the result; 0 where that is less than the least
// normal number.
template <int W>
[[gnu::always_inline]] inline Vec<W> exp_below(Vec<W> x) {
  constexpr float kLeast = -126;
  const Vec<W> t = x * 1.44269504F;
  Vec<W> n;
  if constexpr (W == 8) {
    const __m256 nearest = _mm256_round_ps(reinterpret_cast<const __m256&>(t), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    n = reinterpret_cast<const Vec<W>&>(nearest);
  }
#ifdef __AVX512F__
  if constexpr (W == 16) {
    const __m512 nearest = _mm512_maskz_roundscale_ps(__mmask16(-1), reinterpret_cast<const __m512&>(t),
                                                      _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    n = reinterpret_cast<const Vec<W>&>(nearest);
  }
#endif
  const Vec<W> f = t - n;
  Vec<W> p = f * 0.00132647273F + 0.00967151299F;
  p = p * f + 0.0555073358F;
  p = p * f + 0.240222424F;
  p = p * f + 0.693147004F;
  p = p * f + 1.0F;
#ifdef __AVX512F__
  if constexpr (W == 16) {
    const __m512 of = reinterpret_cast<const __m512&>(t);
    const __mmask16 counts = _mm512_cmp_ps_mask(of, _mm512_set1_ps(kLeast), _CMP_NLT_UQ);  // NaN, too
    const __m512 y = _mm512_maskz_scalef_ps(counts, reinterpret_cast<const __m512&>(p), reinterpret_cast<const __m512&>(n));
    return reinterpret_cast<const Vec<W>&>(y);
  }
#endif
  const IntVec<W> bits = (__builtin_convertvector(n, IntVec<W>) + 127) << 23;
  Vec<W> power;
  std::memcpy(&power, &bits, sizeof power);
  return t < kLeast ? Vec<W>{} : p * power;
}

// 1 / x of finite x above 0.
template <int W>
[[gnu::always_inline]] inline Vec<W> reciprocal(Vec<W> x) {
#ifdef __AVX512F__
  if constexpr (W == 16) {  // its division takes as long as ten products
    const __m512 guess = _mm512_maskz_rcp14_ps(__mmask16(-1), reinterpret_cast<const __m512&>(x));
    const Vec<W> r = reinterpret_cast<const Vec<W>&>(guess);
    return r + r * (1.0F - x * r);
  }
#endif
  return 1.0F / x;
}

template <int W>
[[gnu::always_inline]] inline Vec<W> magnitude(Vec<W> x) {
  IntVec<W> bits;
  std::memcpy(&bits, &x, sizeof bits);
  bits &= 0x7fffffff;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

// The normal distribution function at x, and its density times sqrt(2 pi).
template <int W>
struct Normal {
  Vec<W> below, power;
};

// The tail above |x| is exp(-x^2 / 2) R(|x|) with a polynomial R in 1 / (1 + 0.3 |x|), fitted on [0, 14] for the least relative
// error, 1.5e-7: so that the tail below x has as many digits as the rest.
template <int W>
[[gnu::always_inline]] inline Normal<W> normal_of(Vec<W> x) {
  const Vec<W> size = magnitude<W>(x);
  const Vec<W> t = reciprocal<W>(1.0F + 0.3F * (size < 20.0F ? size : Vec<W>{} + 20.0F));  // behind which nothing is left
  Vec<W> r = t * 0.035675231F - 0.157204881F;
  r = r * t + 0.206356376F;
  r = r * t - 0.0536860600F;
  r = r * t + 0.128562778F;
  r = r * t + 0.0999131799F;
  r = r * t + 0.120754004F;
  r = r * t + 0.119629294F;
  const Vec<W> power = exp_below<W>(x * x * -0.5F);
  const Vec<W> tail = power * r * t;
  return {x < 0.0F ? tail : 1.0F - tail, power};
}

template <int W>
[[gnu::always_inline]] inline Vec<W> sigmoid_of(Vec<W> x) {
  const Vec<W> e = exp_below<W>(-magnitude<W>(x));
  const Vec<W> r = reciprocal<W>(1.0F + e);
  return x < 0.0F ? e * r : r;
}

}  // namespace
}  // namespace tessera::cpu
