// Products of rows that lie side by side with a few vectors.
// Included only by kernels.h; W, the lanes of a vector, tells the instances apart.
#pragma once

#include <cstdint>

#include "core/cpu/sparse/problem.h"
#include "core/cpu/vectors.h"

namespace tessera::cpu::sparse {
namespace {

// Dot products of a row and V vectors, each of as many sums as hide the time of an addition.
template <int W, int V>
[[gnu::always_inline]] inline void dots_of_row(const float* row, std::int64_t columns, const float* x, std::int64_t pitch,
                                               float* dots) {
  constexpr int kSums = V == 1 ? 4 : 2;
  Vec<W> sums[V][kSums]{};
  std::int64_t c = 0;
  for (; c + kSums * W <= columns; c += kSums * W) {
#pragma GCC unroll 4
    for (int k = 0; k < kSums; ++k) {
      const Vec<W> a = load<W>(row + c + k * W);
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) sums[v][k] += a * load<W>(x + v * pitch + c + k * W);
    }
  }
  for (; c < columns; c += W) {
    const Vec<W> a = columns - c >= W ? load<W>(row + c) : load_first<W>(row + c, columns - c);
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) sums[v][0] += a * load<W>(x + v * pitch + c);
  }
#pragma GCC unroll 4
  for (int v = 0; v < V; ++v) {
#pragma GCC unroll 4
    for (int k = 1; k < kSums; ++k) sums[v][0] += sums[v][k];
    dots[v] = lane_sum<W>(sums[v][0]);
  }
}

template <int W, int V>
void dots_of_rows(const FewRows& of, const float* x, std::int64_t pitch, float* dots) {
  for (std::int64_t r = 0; r < of.count; ++r) {
    dots_of_row<W, V>(of.values + of.offsets[of.rows[r]], of.columns, x, pitch, dots + r * V);
  }
}

template <int W>
void few(const FewRows& of, const float* x, std::int64_t pitch, int vectors, float* dots) {
  switch (vectors) {
    case 1: return dots_of_rows<W, 1>(of, x, pitch, dots);
    case 2: return dots_of_rows<W, 2>(of, x, pitch, dots);
    case 3: return dots_of_rows<W, 3>(of, x, pitch, dots);
    default: return dots_of_rows<W, 4>(of, x, pitch, dots);
  }
}

}  // namespace
}  // namespace tessera::cpu::sparse
