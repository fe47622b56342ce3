// How kernels of rows load, store and sum vectors. Included like core/cpu/vectors.h.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "core/cpu/rows/problem.h"
#include "core/cpu/vectors.h"

namespace tessera::cpu::rows {
namespace {

#ifdef __AVX512F__
inline __mmask16 first_lanes(std::int64_t lanes) { return static_cast<__mmask16>((1U << lanes) - 1); }
#endif

template <int W>
[[gnu::always_inline]] inline Vec<W> load_part(const float* from, std::int64_t lanes, float behind) {
#ifdef __AVX512F__
  if constexpr (W == 16) {
    const Vec<W> rest = Vec<W>{} + behind;
    const __m512 v = _mm512_mask_loadu_ps(reinterpret_cast<const __m512&>(rest), first_lanes(lanes), from);
    return reinterpret_cast<const Vec<W>&>(v);
  }
#endif
  Vec<W> v = Vec<W>{} + behind;
  for (std::int64_t i = 0; i < lanes; ++i) v[i] = from[i];
  return v;
}

template <int W>
[[gnu::always_inline]] inline void store_part(const Vec<W>& v, std::int64_t lanes, float* to) {
#ifdef __AVX512F__
  if constexpr (W == 16) return _mm512_mask_storeu_ps(to, first_lanes(lanes), reinterpret_cast<const __m512&>(v));
#endif
  for (std::int64_t i = 0; i < lanes; ++i) to[i] = v[i];
}

template <int W>
[[gnu::always_inline]] inline void store_past_caches(const Vec<W>& v, float* to) {
#ifdef __AVX512F__
  if constexpr (W == 16) return _mm512_stream_ps(to, reinterpret_cast<const __m512&>(v));
#endif
  if constexpr (W == 8) _mm256_stream_ps(to, reinterpret_cast<const __m256&>(v));
}

template <int W>
bool is_aligned(const float* at) {
  return reinterpret_cast<std::uintptr_t>(at) % (W * sizeof(float)) == 0;
}

// Others see what was stored past the caches.
inline void finish(Stores stores) {
  if (stores == Stores::past_caches) _mm_sfence();
}

// Writes the whole vectors of `count` elements: at(i) makes the one at i.
template <int W, class At>
[[gnu::always_inline]] inline void write_all(std::int64_t count, Stores stores, float* to, const At& at) {
  std::int64_t i = 0;
  if (stores == Stores::past_caches && is_aligned<W>(to)) {
    for (; i + W <= count; i += W) store_past_caches<W>(at(i), to + i);
    finish(stores);
  } else {
    for (; i + W <= count; i += W) store<W>(at(i), to + i);
  }
}

// y = f(x) and y = f(x, g).
template <int W, class F>
void map(const float* x, std::int64_t count, Stores stores, float* y, const F& f) {
  write_all<W>(
      count, stores, y, [&](std::int64_t i) __attribute__((always_inline)) { return f(load<W>(x + i)); });
  const std::int64_t rest = count % W, at = count - rest;
  if (rest > 0) store_part<W>(f(load_part<W>(x + at, rest, 0)), rest, y + at);
}
template <int W, class F>
void map(const float* x, const float* g, std::int64_t count, Stores stores, float* y, const F& f) {
  write_all<W>(
      count, stores, y, [&](std::int64_t i) __attribute__((always_inline)) { return f(load<W>(x + i), load<W>(g + i)); });
  const std::int64_t rest = count % W, at = count - rest;
  if (rest > 0) store_part<W>(f(load_part<W>(x + at, rest, 0), load_part<W>(g + at, rest, 0)), rest, y + at);
}

template <int W>
[[gnu::always_inline]] inline Vec<W> row_part(const float* x, std::int64_t i, std::int64_t lanes, float behind) {
  return lanes == W ? load<W>(x + i) : load_part<W>(x + i, lanes, behind);
}

template <int W>
struct Pair {
  Vec<W> first, second;
};

// Writes two arrays: at(i, lanes) makes the vectors of both at i, of which `lanes` count. finish() is the caller's.
template <int W, class At>
[[gnu::always_inline]] inline void write_pairs(std::int64_t count, Stores stores, float* first, float* second, const At& at) {
  const bool past = stores == Stores::past_caches && is_aligned<W>(first) && is_aligned<W>(second);
  std::int64_t i = 0;
  for (; i + W <= count; i += W) {
    const Pair<W> here = at(i, std::int64_t{W});
    past ? store_past_caches<W>(here.first, first + i) : store<W>(here.first, first + i);
    past ? store_past_caches<W>(here.second, second + i) : store<W>(here.second, second + i);
  }
  if (i == count) return;
  const Pair<W> here = at(i, count - i);
  store_part<W>(here.first, count - i, first + i);
  store_part<W>(here.second, count - i, second + i);
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

// Of four vectors.
template <int W>
[[gnu::always_inline]] inline float sum_of(const Vec<W> (&v)[4]) {
  const auto plus = [](const auto& a, const auto& b) __attribute__((always_inline)) { return a + b; };
  return joined<W>(plus(plus(v[0], v[1]), plus(v[2], v[3])), plus);
}
template <int W>
[[gnu::always_inline]] inline float largest_of(const Vec<W> (&v)[4]) {
  const auto larger = [](const auto& a, const auto& b) __attribute__((always_inline)) { return a > b ? a : b; };
  return joined<W>(larger(larger(v[0], v[1]), larger(v[2], v[3])), larger);
}

// Calls body(sums index, vector of the row) with the rest of a row filled up by `behind`; four independent sums hide latencies.
template <int W, class Body>
[[gnu::always_inline]] inline void for_each_vector(std::int64_t n, const Body& body) {
  std::int64_t i = 0;
  for (; i + 4 * W <= n; i += 4 * W) {
    body(0, i, std::int64_t{W});
    body(1, i + W, std::int64_t{W});
    body(2, i + 2 * W, std::int64_t{W});
    body(3, i + 3 * W, std::int64_t{W});
  }
  for (; i < n; i += W) body(0, i, n - i < W ? n - i : std::int64_t{W});
}

}  // namespace
}  // namespace tessera::cpu::rows
