// Products of sparse matrices with panels, and the transpositions between images and panels.
// Included only by the files that build it for one instruction set each; W, the lanes of a vector, tells their instances apart.
#pragma once

#include "core/cpu/sparse/gradient_kernels.h"
#include "core/cpu/sparse/problem.h"
#include "core/cpu/sparse/vector.h"

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

// One piece's R rows at N vectors of positions. A single row has two sums for each, of elements in turns: one sum would wait for
// the multiply-add before.
template <int W, int N, int R, class Walk>
void add_piece(const Piece& piece, const Lists& lists, const float* weights, const float* x, const Walk& walk, float* y) {
  constexpr int kTurns = R == 1 ? 2 : 1;
  Vec<W> sum[kTurns][R][N]{};
  const std::int32_t* const columns = lists.column_list + piece.columns;
  const std::int32_t* const rows = lists.row_list + piece.rows;
#pragma GCC unroll 6
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
    for (int n = 0; n < N; ++n) sum[0][r][n] = load<W>(y + rows[r] * kPanel + n * W);
  }
  const float* a = weights + piece.weights;
  const auto add_column = [&](int turn, std::int64_t c) __attribute__((always_inline)) {
    const float* const from = x + walk.column(columns[c]);
    Vec<W> b[N];
#pragma GCC unroll 8
    for (int n = 0; n < N; ++n) b[n] = load<W>(from + walk.position(n * W));
#pragma GCC unroll 6
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
      for (int n = 0; n < N; ++n) sum[turn][r][n] += a[r] * b[n];
    }
    a += R;
  };
  std::int64_t c = 0;
  for (; c + kTurns <= piece.column_count; c += kTurns) {
#pragma GCC unroll 2
    for (int turn = 0; turn < kTurns; ++turn) add_column(turn, c + turn);
  }
  if (c < piece.column_count) add_column(0, c);
#pragma GCC unroll 6
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
    for (int n = 0; n < N; ++n) {
      if constexpr (kTurns == 2) sum[0][r][n] += sum[1][r][n];
      store<W>(sum[0][r][n], y + rows[r] * kPanel + n * W);
    }
  }
}

// Vectors of positions whose sums fill the registers, of which there are 32 with 16 lanes and 16 with 8.
template <int W, int R>
inline constexpr int kVectors = W == 16  ? 4
                                : R <= 2 ? 4
                                         : 2;

template <int W, int R, class Walk>
void add_piece_rows(const Piece& piece, const Lists& lists, const float* weights, const float* x, const Walk& walk,
                    std::int64_t width, float* y) {
  constexpr std::int64_t kStep = kVectors<W, R> * W;
  std::int64_t p = 0;
  for (; p + kStep <= width; p += kStep) {
    add_piece<W, kVectors<W, R>, R>(piece, lists, weights, x + walk.position(p), walk, y + p);
  }
  for (; p < width; p += W) add_piece<W, 1, R>(piece, lists, weights, x + walk.position(p), walk, y + p);
}

template <int W, class Walk>
void walk_product(const Lists& lists, const float* weights, const float* x, const Walk& walk, std::int64_t width, float* y) {
  for (std::int64_t i = 0; i < lists.count; ++i) {
    const Piece& piece = lists.pieces[i];
    switch (piece.row_count) {
      case 1: add_piece_rows<W, 1>(piece, lists, weights, x, walk, width, y); break;
      case 2: add_piece_rows<W, 2>(piece, lists, weights, x, walk, width, y); break;
      case 3: add_piece_rows<W, 3>(piece, lists, weights, x, walk, width, y); break;
      case 4: add_piece_rows<W, 4>(piece, lists, weights, x, walk, width, y); break;
      case 5: add_piece_rows<W, 5>(piece, lists, weights, x, walk, width, y); break;
      default: add_piece_rows<W, 6>(piece, lists, weights, x, walk, width, y); break;
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
  return {product<W>, strip_product<W>, dots<W>, tile<W>, pack<W>, copy<W>, unpack<W>};
}

}  // namespace
}  // namespace tessera::cpu::sparse
