// Sums over rows, in double. Included like core/cpu/vectors.h.
#pragma once

#include <cstdint>
#include <cstring>

#include "core/cpu/rows/parts.h"

namespace tessera::cpu::rows {
namespace {

// Joins sums with doubles.
template <int W>
[[gnu::always_inline]] inline void add_to(double* to, const Vec<W>& sum) {
  typedef double Wide __attribute__((vector_size(4 * W)));  // of a register: GCC takes longer ones apart
  Vec<W / 2> halves[2];
  std::memcpy(halves, &sum, sizeof halves);
#pragma GCC unroll 2
  for (int i = 0; i < 2; ++i) {
    Wide at;
    std::memcpy(&at, to + i * W / 2, sizeof at);
    at += __builtin_convertvector(halves[i], Wide);
    std::memcpy(to + i * W / 2, &at, sizeof at);
  }
}

template <int W, int R>
void add_few_rows(const float* x, std::int64_t pitch, std::int64_t n, double* sums) {
  const auto sum = [&](std::int64_t i, auto part) __attribute__((always_inline)) {
    Vec<W> all{};
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      prefetch(x + (R + r) * pitch + i);
      all += row_part<W>(x + r * pitch, i, part);
    }
    return all;
  };
  std::int64_t i = 0;
  for (; i + W <= n; i += W) add_to<W>(sums + i, sum(i, Whole()));
  if (i == n) return;
  const Vec<W> rest = sum(i, Part{n - i});
  for (std::int64_t at = i; at < n; ++at) sums[at] += static_cast<double>(rest[at - i]);
}

template <int W>
void add_rows(const float* x, std::int64_t pitch, std::int64_t count, std::int64_t n, double* sums) {
  std::int64_t r = 0;
  for (; r + 8 <= count; r += 8) add_few_rows<W, 8>(x + r * pitch, pitch, n, sums);
  for (; r < count; ++r) add_few_rows<W, 1>(x + r * pitch, pitch, n, sums);
}

}  // namespace
}  // namespace tessera::cpu::rows
