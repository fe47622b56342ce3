// Products of sparse matrices with panels and with strips.
// Included only by kernels.h; W, the lanes of a vector, tells the instances apart.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "core/cpu/sparse/problem.h"
#include "core/cpu/vectors.h"

namespace tessera::cpu::sparse {
namespace {

// Where a piece reads its positions of a column: in a panel, or in strips.
struct PanelWalk {
  std::int64_t position(std::int64_t p) const { return p; }
};
struct StripWalk {
  std::int64_t stride;
  std::int64_t position(std::int64_t p) const { return p / kStripLanes * stride + p % kStripLanes; }
};

// Pieces of a single row, one after another, at N vectors of positions. Each position has two sums, of elements in turns: one
// would wait for the multiply-add before. Weights are loaded four at a time, because loads bound the product: each multiply-add
// loads a vector of x.
template <int W, int N, class Walk>
void add_single_rows(const Lists& lists, const float* weights, const float* x, const Walk& walk, float* y) {
  for (const Piece *piece = lists.pieces, *const end = piece + lists.count; piece != end; ++piece) {
    const std::int32_t* c = lists.column_list + piece->columns;
    const std::int32_t* const last = c + piece->column_count;
    const float* a = weights + piece->weights;
    float* const to = y + (lists.row_list[piece->rows] - lists.first_row) * kPanel;
    Vec<W> sum[N], other[N]{};
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n) sum[n] = load<W>(to + n * W);
    const auto add = [&](Vec<W>(&sums)[N], std::int64_t i, const auto& weight) __attribute__((always_inline)) {
      const float* const from = x + c[i];
#pragma GCC unroll 4
      for (int n = 0; n < N; ++n) sums[n] += weight * load<W>(from + walk.position(n * W));
    };
    for (; last - c >= 4; c += 4, a += 4) {
      const Vec<W> four = load_fours<W>(a);
      add(sum, 0, lane_of_fours<W, 0>(four));
      add(other, 1, lane_of_fours<W, 1>(four));
      add(sum, 2, lane_of_fours<W, 2>(four));
      add(other, 3, lane_of_fours<W, 3>(four));
    }
    for (; last - c >= 2; c += 2, a += 2) {
      add(sum, 0, a[0]);
      add(other, 1, a[1]);
    }
    if (c < last) add(sum, 0, a[0]);
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n) store<W>(sum[n] + other[n], to + n * W);
  }
}

// One piece's R rows at N vectors of positions.
template <int W, int N, int R, class Walk>
void add_piece(const Piece& piece, const Lists& lists, const float* weights, const float* x, const Walk& walk, float* y) {
  const std::int32_t* c = lists.column_list + piece.columns;
  const std::int32_t* const last = c + piece.column_count;
  const float* a = weights + piece.weights;
  float* to[R];
  Vec<W> sum[R][N];
#pragma GCC unroll 6
  for (int r = 0; r < R; ++r) {
    to[r] = y + (lists.row_list[piece.rows + r] - lists.first_row) * kPanel;
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n) sum[r][n] = load<W>(to[r] + n * W);
  }
  do {  // a piece has at least one column; to test for none would have every sum spilled
    const float* const from = x + *c;
    Vec<W> b[N];
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n) b[n] = load<W>(from + walk.position(n * W));
#pragma GCC unroll 6
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
      for (int n = 0; n < N; ++n) sum[r][n] += a[r] * b[n];
    }
    a += R;
  } while (++c != last);
#pragma GCC unroll 6
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n) store<W>(sum[r][n], to[r] + n * W);
  }
}

// Vectors of positions whose sums fill the registers. There are 32 registers with 16 lanes, 16 with 8.
template <int W, int R>
inline constexpr int kVectors = W == 16 || R <= 2 ? 4 : 2;

// Calls add(N, first position) for N vectors of positions at a time: Most, and at last as many as are left.
template <int W, int Most, class Add>
[[gnu::always_inline]] inline void by_vectors(std::int64_t width, const Add& add) {
  std::int64_t p = 0;
  for (; width - p >= Most * W; p += Most * W) add(std::integral_constant<int, Most>(), p);
  if (p >= width) return;
  switch ((width - p + W - 1) / W) {
    case 1: return add(std::integral_constant<int, 1>(), p);
    case 2: return add(std::integral_constant<int, std::min(2, Most)>(), p);
    case 3: return add(std::integral_constant<int, std::min(3, Most)>(), p);
    default: return add(std::integral_constant<int, Most>(), p);
  }
}

template <int W, int R, class Walk>
void add_rows(const Lists& lists, const float* weights, const float* x, const Walk& walk, std::int64_t width, float* y) {
  by_vectors<W, kVectors<W, R>>(
      width, [&](auto n, std::int64_t p) __attribute__((always_inline)) {
        if constexpr (R == 1) return add_single_rows<W, n>(lists, weights, x + walk.position(p), walk, y + p);
        for (std::int64_t i = 0; i < lists.count; ++i)
          add_piece<W, n, R>(lists.pieces[i], lists, weights, x + walk.position(p), walk, y + p);
      });
}

// Runs of single rows together, other pieces one by one: while they are multiplied, x stays where it is.
template <int W, class Walk>
void walk_product(const Lists& lists, const float* weights, const float* x, const Walk& walk, std::int64_t width, float* y) {
  const Piece* const end = lists.pieces + lists.count;
  for (const Piece *first = lists.pieces, *next = nullptr; first != end; first = next) {
    next = first + 1;
    while (first->row_count == 1 && next != end && next->row_count == 1) ++next;
    const Lists run{first, next - first, lists.row_list, lists.column_list, lists.first_row};
    switch (first->row_count) {
      case 1: add_rows<W, 1>(run, weights, x, walk, width, y); break;
      case 2: add_rows<W, 2>(run, weights, x, walk, width, y); break;
      case 3: add_rows<W, 3>(run, weights, x, walk, width, y); break;
      case 4: add_rows<W, 4>(run, weights, x, walk, width, y); break;
      case 5: add_rows<W, 5>(run, weights, x, walk, width, y); break;
      default: add_rows<W, 6>(run, weights, x, walk, width, y); break;
    }
  }
}

template <int W>
void product(const Lists& lists, const float* weights, const float* x, std::int64_t width, float* y) {
  walk_product<W>(lists, weights, x, PanelWalk{}, width, y);
}

template <int W>
void strip_product(const Lists& lists, const float* weights, const float* x, std::int64_t stride, std::int64_t width, float* y) {
  walk_product<W>(lists, weights, x, StripWalk{stride}, width, y);
}

}  // namespace
}  // namespace tessera::cpu::sparse
