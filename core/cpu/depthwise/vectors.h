// What is done to vectors of W channels, and loops that are written out.
// Included only by the files that build it for one instruction set each; W, the lanes of a vector, tells their instances apart.
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <type_traits>
#include <utility>

#include "core/cpu/depthwise/problem.h"
#include "core/cpu/vectors.h"

namespace tessera::cpu::depthwise {
namespace {

template <int W>
[[gnu::always_inline]] inline Vec<W> bias_of(const Epilogue& epilogue, std::int64_t channel) {
  return epilogue.bias != nullptr ? load<W>(epilogue.bias + channel) : Vec<W>{};
}

template <int W>
[[gnu::always_inline]] inline void finish(const Vec<W>& v, const Epilogue& epilogue, float* y) {
  const Vec<W> result = epilogue.relu ? (v < 0 ? Vec<W>{} : v) : v;
#ifdef __AVX512F__
  if constexpr (W == 16) {
    if (epilogue.past_caches) return _mm512_stream_ps(y, result);
  }
#endif
  store<W>(result, y);
}

// step(std::integral_constant<int, i>()) for i from 0 to N - 1: sums that are indexed by them live in registers.
template <int N, class Step>
[[gnu::always_inline]] inline void repeat(Step&& step) {
  [&]<int... I>(std::integer_sequence<int, I...>) __attribute__((always_inline)) {
    (step(std::integral_constant<int, I>()), ...);
  }
  (std::make_integer_sequence<int, N>());
}

// step(first channel, lanes as a constant): whole vectors of W, then narrower ones for what is left.
template <int W, class Step>
[[gnu::always_inline]] inline void for_each_vector(Channels channels, Step&& step) {
  std::int64_t c = channels.first;
  for (; c + W <= channels.last; c += W) step(c, std::integral_constant<int, W>());
  if constexpr (W > 8) {
    if (c + 8 <= channels.last) {
      step(c, std::integral_constant<int, 8>());
      c += 8;
    }
  }
  if (c + 4 <= channels.last) {
    step(c, std::integral_constant<int, 4>());
    c += 4;
  }
  for (; c < channels.last; ++c) step(c, std::integral_constant<int, 1>());
}

// step(first output, number of outputs as a constant) over a row: as many at a time as fill it evenly.
template <class Step>
[[gnu::always_inline]] inline void for_each_group(std::int64_t count, Step&& step) {
  std::int64_t t = 0;
  if (count % 7 == 0) {
    for (; t < count; t += 7) step(t, std::integral_constant<int, 7>());
    return;
  }
  for (; t + 8 <= count; t += 8) step(t, std::integral_constant<int, 8>());
  if (t + 4 <= count) {
    step(t, std::integral_constant<int, 4>());
    t += 4;
  }
  if (t + 2 <= count) {
    step(t, std::integral_constant<int, 2>());
    t += 2;
  }
  if (t < count) step(t, std::integral_constant<int, 1>());
}

}  // namespace
}  // namespace tessera::cpu::depthwise
