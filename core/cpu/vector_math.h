// Functions of vectors of W floats, to a few units in the last place; NaN stays NaN. Included like core/cpu/vectors.h.
#pragma once

#include <bit>

#include "core/cpu/vectors.h"

namespace tessera::cpu {
namespace {

// exp(x): 2^n exp(f) with |f| <= log(2) / 2, by the series of exp. 0 where that is less than the least normal number; no more than
// exp(88.7) above.
template <int W>
[[gnu::always_inline]] inline Vec<W> exp_of(Vec<W> x) {
  constexpr float kLeast = -87.3F, kMost = 88.7F, kToInteger = 0x1.8p23F;  // to which a sum is rounded, in the lowest bits
  const IntVec<W> vanishes = x < kLeast;
  x = x > kMost ? Vec<W>{} + kMost : x;
  const Vec<W> shifted = x * 1.44269504F + kToInteger;
  const Vec<W> n = shifted - kToInteger;
  const Vec<W> f = x - n * 0.693145752F - n * 1.42860677e-6F;  // log(2) in two parts, of which the first times n is exact
  Vec<W> p = f * (1.0F / 5040) + 1.0F / 720;
  p = p * f + 1.0F / 120;
  p = p * f + 1.0F / 24;
  p = p * f + 1.0F / 6;
  p = p * f + 0.5F;
  p = p * f + 1.0F;
  p = p * f + 1.0F;
  IntVec<W> bits;
  std::memcpy(&bits, &shifted, sizeof bits);
  bits = (bits - (std::bit_cast<std::int32_t>(kToInteger) - 127)) << 23;
  Vec<W> power;
  std::memcpy(&power, &bits, sizeof power);
  return vanishes ? Vec<W>{} : p * power;
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

// Of |x| what lies above it is exp(-x^2 / 2) R(|x|) with a polynomial R in 1 / (1 + 0.3 |x|), fitted on [0, 14] for the least
// relative error, 1.5e-7: so that the tail below x has as many digits as the rest.
template <int W>
[[gnu::always_inline]] inline Normal<W> normal_of(Vec<W> x) {
  const Vec<W> t = 1.0F / (1.0F + 0.3F * magnitude<W>(x));
  Vec<W> r = t * 0.035675231F - 0.157204881F;
  r = r * t + 0.206356376F;
  r = r * t - 0.0536860600F;
  r = r * t + 0.128562778F;
  r = r * t + 0.0999131799F;
  r = r * t + 0.120754004F;
  r = r * t + 0.119629294F;
  const Vec<W> power = exp_of<W>(x * x * -0.5F);
  const Vec<W> tail = power * r * t;
  return {x < 0.0F ? tail : 1.0F - tail, power};
}

template <int W>
[[gnu::always_inline]] inline Vec<W> sigmoid_of(Vec<W> x) {
  return 1.0F / (1.0F + exp_of<W>(-x));
}

}  // namespace
}  // namespace tessera::cpu
