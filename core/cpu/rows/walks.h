// How kernels of rows go through their elements and sum them. Included like core/cpu/vectors.h.
#pragma once

#include <immintrin.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "core/cpu/rows/parts.h"
#include "core/cpu/rows/problem.h"
#include "core/cpu/vectors.h"

namespace tessera::cpu::rows {
namespace {

template <int W>
[[gnu::always_inline]] inline Vec<W> larger_of(const Vec<W>& a, const Vec<W>& b) {  // b where one is NaN
#ifdef __AVX512F__
  if constexpr (W == 16) {
    const __m512 v = _mm512_maskz_max_ps(__mmask16(-1), reinterpret_cast<const __m512&>(a), reinterpret_cast<const __m512&>(b));
    return reinterpret_cast<const Vec<W>&>(v);
  }
#endif
  return a > b ? a : b;
}

// Writes `count` elements: at(i, part) makes the vector at i, whose first lanes count as `part` says.
template <int W, class T, class At>
[[gnu::always_inline]] inline void write_all(std::int64_t count, Stores stores, T* to, const At& at) {
  std::int64_t i = 0;
  if (stores == Stores::past_caches) {
    i = std::min(to_alignment<W>(to), count);
    if (i > 0) store_part<W>(at(std::int64_t{0}, Part{i}), i, to);
#pragma GCC unroll 4
    for (; i + W <= count; i += W) store_past_caches<W>(at(i, Whole()), to + i);
  } else {
#pragma GCC unroll 4
    for (; i + W <= count; i += W) store<W>(at(i, Whole()), to + i);
  }
  if (i < count) store_part<W>(at(i, Part{count - i}), count - i, to + i);
}

// y = f(x) and y = f(x, g).
template <int W, class T, class F>
void map(const T* x, std::int64_t count, Stores stores, T* y, const F& f) {
  write_all<W>(
      count, stores, y, [&](std::int64_t i, auto part) __attribute__((always_inline)) { return f(row_part<W>(x, i, part)); });
}
template <int W, class T, class F>
void map(const T* x, const T* g, std::int64_t count, Stores stores, T* y, const F& f) {
  write_all<W>(
      count, stores, y, [&](std::int64_t i, auto part) __attribute__((always_inline)) {
        return f(row_part<W>(x, i, part), row_part<W>(g, i, part));
      });
}

template <int W>
struct Pair {
  Vec<W> first, second;
};

// Writes two arrays: at(i, part) makes the vectors of both at i, whose first lanes count as `part` says.
template <int W, class T, class At>
[[gnu::always_inline]] inline void write_pairs(std::int64_t count, Stores stores, T* first, T* second, const At& at) {
  const bool past = stores == Stores::past_caches && to_alignment<W>(first) == 0 && to_alignment<W>(second) == 0;
  std::int64_t i = 0;
  for (; i + W <= count; i += W) {
    const Pair<W> here = at(i, Whole());
    past ? store_past_caches<W>(here.first, first + i) : store<W>(here.first, first + i);
    past ? store_past_caches<W>(here.second, second + i) : store<W>(here.second, second + i);
  }
  if (i == count) return;
  const Pair<W> here = at(i, Part{count - i});
  store_part<W>(here.first, count - i, first + i);
  store_part<W>(here.second, count - i, second + i);
}

// Over the lanes of four vectors.
template <int W>
[[gnu::always_inline]] inline float sum_of(const Vec<W> (&v)[4]) {
  return lane_sum<W>((v[0] + v[1]) + (v[2] + v[3]));
}
template <int W>
[[gnu::always_inline]] inline float largest_of(const Vec<W> (&v)[4]) {
  const Vec<W> a = v[0] > v[1] ? v[0] : v[1], b = v[2] > v[3] ? v[2] : v[3];
  return largest_lane<W>(a > b ? a : b);
}

// Calls body(sum, i, part) for the vectors of a row; four independent sums hide latencies.
template <int W, class Body>
[[gnu::always_inline]] inline void for_each_vector(std::int64_t n, const Body& body) {
  std::int64_t i = 0;
  for (; i + 4 * W <= n; i += 4 * W) {
    body(0, i, Whole());
    body(1, i + W, Whole());
    body(2, i + 2 * W, Whole());
    body(3, i + 3 * W, Whole());
  }
  for (; i + W <= n; i += W) body(0, i, Whole());
  if (i < n) body(0, i, Part{n - i});
}

}  // namespace
}  // namespace tessera::cpu::rows
