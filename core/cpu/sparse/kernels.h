// Products of sparse matrices with panels, and the transpositions between images and panels.
// Included only by the files that build it for one instruction set each; W, the lanes of a vector, tells their instances apart.
#pragma once

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "core/cpu/sparse/gradient_kernels.h"
#include "core/cpu/sparse/problem.h"
#include "core/cpu/vectors.h"

namespace tessera::cpu::sparse {
namespace {

// Where a piece reads its positions of a column: in a panel, or in strips.
struct PanelWalk {
  std::int64_t column(std::int32_t number) const { return number * kPanel; }
  std::int64_t position(std::int64_t p) const { return p; }
};
struct StripWalk {
  std::int64_t stride;
  std::int64_t column(std::int32_t offset) const { return offset; }
  std::int64_t position(std::int64_t p) const { return p / kStripLanes * stride + p % kStripLanes; }
};

// Pieces of a single row, one after another, at N vectors of positions. Each position has two sums, of elements in turns: one
// would wait for the multiply-add before.
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
    const auto add = [&](Vec<W>(&sums)[N], std::int64_t i) __attribute__((always_inline)) {
      const float* const from = x + walk.column(c[i]);
#pragma GCC unroll 4
      for (int n = 0; n < N; ++n) sums[n] += a[i] * load<W>(from + walk.position(n * W));
    };
    for (; c + 1 < last; c += 2, a += 2) {
      add(sum, 0);
      add(other, 1);
    }
    if (c < last) add(sum, 0);
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
    const float* const from = x + walk.column(*c);
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

// Vectors of positions whose sums fill the registers, of which there are 32 with 16 lanes and 16 with 8.
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

template <int W>
void pack(const float* const* rows, std::int64_t positions, std::int64_t channels, float* to, std::int64_t pitch) {
  for (std::int64_t p = 0; p < positions; p += W) {
    const std::int64_t here = positions - p < W ? positions - p : W;
    std::int64_t c = 0;
    for (; c + W <= channels; c += W) {
      Vec<W> v[W];
      const auto row = [&](std::int64_t i) { return load<W>(rows[p + i] + c); };
      if (here == W) {
#pragma GCC unroll 16
        for (int i = 0; i < W; ++i) v[i] = row(i);
      } else {
#pragma GCC unroll 16
        for (int i = 0; i < W; ++i) v[i] = i < here ? row(i) : Vec<W>{};
      }
      transpose<W>(v);
#pragma GCC unroll 16
      for (int i = 0; i < W; ++i) store<W>(v[i], to + (c + i) * pitch + p);
    }
    for (; c < channels; ++c) {
      for (std::int64_t i = 0; i < W; ++i) to[c * pitch + p + i] = i < here ? rows[p + i][c] : 0.0F;
    }
  }
}

template <int W>
void copy(const Segment* segments, std::int64_t count, std::int64_t channels, std::int64_t from_pitch, float* to,
          std::int64_t to_pitch) {
  for (std::int64_t c = 0; c < channels; ++c) {
    for (std::int64_t s = 0; s < count; ++s) {
      const float* const from = segments[s].from + c * from_pitch;
      float* const row = to + c * to_pitch + segments[s].to;
      for (std::int64_t i = 0; i < segments[s].length; i += W) store<W>(load<W>(from + i), row + i);
    }
  }
}

template <int W>
void unpack(const float* from, std::int64_t pitch, std::int64_t positions, std::int64_t channels, bool relu, float* const* rows) {
  for (std::int64_t p = 0; p < positions; p += W) {
    const std::int64_t here = positions - p < W ? positions - p : W;
    std::int64_t c = 0;
    for (; c + W <= channels; c += W) {
      Vec<W> v[W];
#pragma GCC unroll 16
      for (int i = 0; i < W; ++i) {
        v[i] = load<W>(from + (c + i) * pitch + p);
        if (relu) v[i] = v[i] < 0 ? Vec<W>{} : v[i];
      }
      transpose<W>(v);
      if (here == W) {
#pragma GCC unroll 16
        for (int i = 0; i < W; ++i) store<W>(v[i], rows[p + i] + c);
      } else {
#pragma GCC unroll 16
        for (int i = 0; i < W; ++i) {
          if (i < here) store<W>(v[i], rows[p + i] + c);
        }
      }
    }
    for (; c < channels; ++c) {
      for (std::int64_t i = 0; i < here; ++i) {
        const float value = from[c * pitch + p + i];
        rows[p + i][c] = relu && value < 0 ? 0.0F : value;
      }
    }
  }
}

template <int W>
constexpr Kernels kernels_of() {
  return {product<W>, strip_product<W>, dots<W>, tile<W>, pack<W>, copy<W>, unpack<W>};
}

}  // namespace
}  // namespace tessera::cpu::sparse
