// Sums over positions at kept elements (gradient.h): small dense products of rows that share columns.
// Included only by kernels.h; W, the lanes of a vector, tells the instances apart.
#pragma once

#include <cstdint>
#include <type_traits>

#include "core/cpu/sparse/problem.h"
#include "core/cpu/vectors.h"

namespace tessera::cpu::sparse {
namespace {

// C columns with V vectors of rows, at `pitch` floats a position.
template <int W, int V, int C>
void tile_columns(const std::int32_t* columns, const float* y, std::int64_t pitch, const float* x, std::int64_t width,
                  float* sums) {
  Vec<W> sum[C][V]{};
  const float* at[C];
  for (int c = 0; c < C; ++c) at[c] = x + columns[c];
  for (std::int64_t i = 0; i < width; ++i) {
    Vec<W> b[V];
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) b[v] = load<W>(y + i * pitch + v * W);
#pragma GCC unroll 12
    for (int c = 0; c < C; ++c) {
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) sum[c][v] += at[c][i] * b[v];
    }
  }
#pragma GCC unroll 12
  for (int c = 0; c < C; ++c) {
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) {
      float* const to = sums + c * pitch + v * W;
      store<W>(load<W>(to) + sum[c][v], to);
    }
  }
}

// Columns whose sums fill the vector registers (32 with 16 lanes, 16 with 8), or whose addresses fill the general
// registers.
template <int W, int V>
inline constexpr int kColumns = W == 8   ? 6
                                : V == 1 ? 10
                                : V <= 3 ? 8
                                         : 6;

template <int W, int V>
void tile_vectors(const std::int32_t* columns, std::int64_t count, const float* y, std::int64_t pitch, const float* x,
                  std::int64_t width, float* sums) {
  std::int64_t c = 0;
  const auto add = [&]<int C>(std::integral_constant<int, C>) {
    tile_columns<W, V, C>(columns + c, y, pitch, x, width, sums + c * pitch);
    c += C;
  };
  while (c + kColumns<W, V> <= count) add(std::integral_constant<int, kColumns<W, V>>{});
  while (c + 4 <= count) add(std::integral_constant<int, 4>{});
  while (c < count) add(std::integral_constant<int, 1>{});
}

template <int W>
void tile(const std::int32_t* columns, std::int64_t count, const float* y, std::int64_t vectors, const float* x,
          std::int64_t width, float* sums) {
  constexpr int kMost = W == 16 ? 4 : 2;
  const std::int64_t pitch = vectors * kTileLanes;
  std::int64_t r = 0;
  for (; r + kMost * W <= pitch; r += kMost * W) tile_vectors<W, kMost>(columns, count, y + r, pitch, x, width, sums + r);
  if constexpr (W == 16) {
    switch ((pitch - r) / W) {
      case 1: return tile_vectors<W, 1>(columns, count, y + r, pitch, x, width, sums + r);
      case 2: return tile_vectors<W, 2>(columns, count, y + r, pitch, x, width, sums + r);
      case 3: return tile_vectors<W, 3>(columns, count, y + r, pitch, x, width, sums + r);
      default: return;
    }
  }
}

}  // namespace
}  // namespace tessera::cpu::sparse
