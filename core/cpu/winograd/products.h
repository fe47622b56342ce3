// The 36 matrix products of transformed tiles and filters.
// Included only by the files that build it for one instruction set each; W, the lanes of a vector, tells their instances apart.
#pragma once

#include "core/cpu/winograd/vectors.h"

namespace tessera::cpu::winograd {
namespace {

// m [N][M tiles][W] = v [depth / W][M tiles][W] u [depth, N * W]; vectors of v and m lie `step` elements apart.
template <int W, int M, int N>
void multiply(const float* v, const float* u, std::int64_t u_row, std::int64_t depth, std::int64_t step, float* m) {
  Vec<W> sum[M][N]{};
  for (std::int64_t left = depth; left > 0; left -= W, v += step) {
    const float* const end = v + (left < W ? left : W);
    for (const float* at = v; at < end; ++at, u += u_row) {
      Vec<W> b[N];
#pragma GCC unroll 2
      for (int n = 0; n < N; ++n) b[n] = load<W>(u + n * W, W);
#pragma GCC unroll 24
      for (int i = 0; i < M; ++i) {
#pragma GCC unroll 2
        for (int n = 0; n < N; ++n) sum[i][n] += at[i * W] * b[n];
      }
    }
  }
#pragma GCC unroll 24
  for (int i = 0; i < M; ++i) {
#pragma GCC unroll 2
    for (int n = 0; n < N; ++n) store<W>(sum[i][n], m + n * step + i * W, W);
  }
}

// to [M, N * W] += v [tiles][W]^T z [N][tiles][W] of M of the lanes; vectors of z lie `step` elements apart.
template <int W, int M, int N>
void add_products(const float* v, const float* z, std::int64_t step, std::int64_t tiles, float* to, std::int64_t to_row) {
  Vec<W> sum[M][N];
#pragma GCC unroll 16
  for (int i = 0; i < M; ++i) {
#pragma GCC unroll 2
    for (int n = 0; n < N; ++n) sum[i][n] = load<W>(to + i * to_row + n * W, W);
  }
  for (std::int64_t t = 0; t < tiles; ++t, v += W, z += W) {
    Vec<W> b[N];
#pragma GCC unroll 2
    for (int n = 0; n < N; ++n) b[n] = load<W>(z + n * step, W);
#pragma GCC unroll 16
    for (int i = 0; i < M; ++i) {
#pragma GCC unroll 2
      for (int n = 0; n < N; ++n) sum[i][n] += v[i] * b[n];
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < M; ++i) {
#pragma GCC unroll 2
    for (int n = 0; n < N; ++n) store<W>(sum[i][n], to + i * to_row + n * W, W);
  }
}

// Calls step(first lane, number of vectors) over `width` lanes, two vectors at a time while there are two.
template <int W, class Step>
void for_each_panel(std::int64_t width, Step&& step) {
  std::int64_t k = 0;
  for (; k + 2 * W <= width; k += 2 * W) step(k, std::integral_constant<int, 2>());
  if (k < width) step(k, std::integral_constant<int, 1>());
}

// Tiles whose sums fill registers (32 with 16 lanes, 16 with 8): enough of them to hide the latency of a
// multiply-add, with room for u and the element of v.
template <int W, int N>
inline constexpr int kRows = (W == 16 ? 16 : 8) / N;

}  // namespace
}  // namespace tessera::cpu::winograd
