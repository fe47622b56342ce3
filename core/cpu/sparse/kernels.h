// Products of sparse matrices with panels, sums over panels at kept elements, and the transpositions between images and panels.
// Included only by the files that build it for one instruction set each; W, the lanes of a vector, tells their instances apart.
#pragma once

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "core/cpu/sparse/problem.h"

namespace tessera::cpu::sparse {
namespace {

template <int W>
struct Vector {
  typedef float type __attribute__((vector_size(4 * W)));  // the attribute needs a declarator: no alias
  typedef std::int32_t lanes __attribute__((vector_size(4 * W)));
};
template <int W>
using Vec = typename Vector<W>::type;

template <int W>
[[gnu::always_inline]] inline Vec<W> load(const float* from) {
  Vec<W> v;
  std::memcpy(&v, from, sizeof v);
  return v;
}

template <int W>
[[gnu::always_inline]] inline void store(const Vec<W>& v, float* to) {
  std::memcpy(to, &v, sizeof v);
}

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

// Exchanges rows and lanes of v by exchanging blocks of 1, 2, 4, ... elements.
template <int W, int Step = 1>
[[gnu::always_inline]] inline void transpose(Vec<W> (&v)[W]) {
  if constexpr (Step < W) {
    typename Vector<W>::lanes low, high;
    for (int j = 0; j < W; ++j) {
      low[j] = (j & Step) == 0 ? j : W + j - Step;
      high[j] = (j & Step) == 0 ? j + Step : W + j;
    }
#pragma GCC unroll 16
    for (int i = 0; i < W; ++i) {
      if ((i & Step) != 0) continue;
      const Vec<W> a = v[i], b = v[i + Step];
      v[i] = __builtin_shuffle(a, b, low);
      v[i + Step] = __builtin_shuffle(a, b, high);
    }
    transpose<W, 2 * Step>(v);
  }
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
  return {product<W>, strip_product<W>, sums<W>, pack<W>, copy<W>, unpack<W>};
}

}  // namespace
}  // namespace tessera::cpu::sparse
