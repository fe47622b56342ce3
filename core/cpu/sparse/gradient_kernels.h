// Sums over panels at kept elements (gradient.h). Included only by kernels.h; W, the lanes of a vector, tells the instances
// apart.
#pragma once

#include "core/cpu/sparse/problem.h"
#include "core/cpu/sparse/vector.h"

namespace tessera::cpu::sparse {
namespace {

// The sum of all lanes, halves added to halves.
template <int W>
[[gnu::always_inline]] inline float sum_of(const Vec<W>& v) {
  if constexpr (W == 1) {
    return v[0];
  } else if constexpr (W == 2) {
    return v[0] + v[1];
  } else {
    Vec<W / 2> half[2];
    std::memcpy(half, &v, sizeof v);
    return sum_of<W / 2>(half[0] + half[1]);
  }
}

// The sums of four vectors' lanes.
template <int W>
[[gnu::always_inline]] inline Vec<4> sums_of(const Vec<W>* v) {
  Vec<4> four[4];
  for (int i = 0; i < 4; ++i) {
    Vec<W / 2> half[2];
    std::memcpy(half, &v[i], sizeof v[i]);
    Vec<W / 2> folded = half[0] + half[1];
    if constexpr (W == 16) {
      Vec<4> quarter[2];
      std::memcpy(quarter, &folded, sizeof folded);
      four[i] = quarter[0] + quarter[1];
    } else {
      four[i] = folded;
    }
  }
  using Lanes = typename Vector<4>::lanes;
  const Vec<4> low01 = __builtin_shuffle(four[0], four[1], Lanes{0, 4, 1, 5});
  const Vec<4> high01 = __builtin_shuffle(four[0], four[1], Lanes{2, 6, 3, 7});
  const Vec<4> low23 = __builtin_shuffle(four[2], four[3], Lanes{0, 4, 1, 5});
  const Vec<4> high23 = __builtin_shuffle(four[2], four[3], Lanes{2, 6, 3, 7});
  const Vec<4> s01 = low01 + high01;  // 0, 1, 0, 1
  const Vec<4> s23 = low23 + high23;
  return __builtin_shuffle(s01, s23, Lanes{0, 1, 4, 5}) + __builtin_shuffle(s01, s23, Lanes{2, 3, 6, 7});
}

// R rows by C columns of a piece.
template <int W, int R, int C>
void add_sums(const float* const* y, const float* const* x, std::int64_t width, float* to, std::int64_t pitch) {
  Vec<W> sum[R][C]{};
  for (std::int64_t p = 0; p < width; p += W) {
    Vec<W> b[C];
#pragma GCC unroll 4
    for (int c = 0; c < C; ++c) b[c] = load<W>(x[c] + p);
#pragma GCC unroll 3
    for (int r = 0; r < R; ++r) {
      const Vec<W> a = load<W>(y[r] + p);
#pragma GCC unroll 4
      for (int c = 0; c < C; ++c) sum[r][c] += a * b[c];
    }
  }
#pragma GCC unroll 3
  for (int r = 0; r < R; ++r) {
    if constexpr (C == 4) {
      const Vec<4> four = sums_of<W>(sum[r]);
      for (int c = 0; c < 4; ++c) to[c * pitch + r] += four[c];
    } else {
      for (int c = 0; c < C; ++c) to[c * pitch + r] += sum_of<W>(sum[r][c]);
    }
  }
}

template <int W, int R>
void add_row_sums(const Piece& piece, const Lists& lists, int first, const float* y, const float* x, std::int64_t width,
                  float* weights) {
  const float* rows[R];
  for (int r = 0; r < R; ++r) rows[r] = y + lists.row_list[piece.rows + first + r] * kSumPanel;
  const std::int32_t* const columns = lists.column_list + piece.columns;
  const std::int64_t pitch = piece.row_count;
  float* const to = weights + piece.weights + first;
  std::int64_t c = 0;
  for (; c + 4 <= piece.column_count; c += 4) {
    const float* at[4];
    for (int k = 0; k < 4; ++k) at[k] = x + columns[c + k] * kSumPanel;
    add_sums<W, R, 4>(rows, at, width, to + c * pitch, pitch);
  }
  for (; c < piece.column_count; ++c) {
    const float* const at = x + columns[c] * kSumPanel;
    add_sums<W, R, 1>(rows, &at, width, to + c * pitch, pitch);
  }
}

template <int W>
void sums(const Lists& lists, const float* y, const float* x, std::int64_t width, float* weights) {
  for (std::int64_t i = 0; i < lists.count; ++i) {
    const Piece& piece = lists.pieces[i];
    int first = 0;
    for (; first + 3 <= piece.row_count; first += 3) add_row_sums<W, 3>(piece, lists, first, y, x, width, weights);
    if (piece.row_count - first == 2) add_row_sums<W, 2>(piece, lists, first, y, x, width, weights);
    if (piece.row_count - first == 1) add_row_sums<W, 1>(piece, lists, first, y, x, width, weights);
  }
}

}  // namespace
}  // namespace tessera::cpu::sparse
