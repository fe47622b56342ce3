// Small dense products in registers, of a matrix read element by element with one read in vectors. Elements are floats, or pairs
// of bf16 (bf16_pairs.h): then the depth counts pairs. Included like vectors.h.
#pragma once

#include <cstdint>

#include "core/cpu/bf16_pairs.h"
#include "core/cpu/fetch_ahead.h"
#include "core/cpu/vectors.h"

namespace tessera::cpu {
namespace {

struct Extents {
  std::int64_t rows, columns, depth;  // columns are a multiple of the lanes
};

// Element (row, k) lies at[row * this->row + k * step].
template <class T>
struct Scalars {
  const T* at;
  std::int64_t row, step;
};

constexpr std::int64_t kStepsAhead = 8;  // of the depth

// What sums begin with: row r's at[r * row] and on, or zeros. With a row of 0 all rows begin with the same.
struct Start {
  const float* at = nullptr;
  std::int64_t row = 0;

  Start from(std::int64_t r, std::int64_t column) const { return at == nullptr ? Start{} : Start{at + r * row + column, row}; }
};

// kFar: b and c lie beyond the first-level cache, and are fetched before they are needed.
template <int W, bool kFar, int R, int V, class T>
void multiply_block(std::int64_t depth, const Scalars<T>& a, const T* b, std::int64_t b_pitch, const Start& start, float* c,
                    std::int64_t c_pitch) {
  Vec<W> sum[R][V]{};
  if (start.at != nullptr) {
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) sum[r][v] = load<W>(start.at + r * start.row + v * W);
    }
  }
  if constexpr (kFar) {
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) __builtin_prefetch(c + r * c_pitch + v * W, 1);
    }
  }
  const T* row[R];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) row[r] = a.at + r * a.row;
  for (std::int64_t k = 0; k < depth; ++k) {
    Vec<W> x[V];
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) {
      if constexpr (kFar) __builtin_prefetch(b + (k + kStepsAhead) * b_pitch + v * W);
      x[v] = load_operand<W>(b + k * b_pitch + v * W);
    }
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const T factor = row[r][k * a.step];
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) add_product<W>(sum[r][v], factor, x[v]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) store<W>(sum[r][v], c + r * c_pitch + v * W);
  }
}

inline constexpr int kRowsAtOnce = 6;  // of sums in registers
inline constexpr int kLinesAtOnce = 16;  // that are fetched for later during the products of such rows, which take a microsecond

template <int W, bool kFar, int V, class T>
void multiply_columns(const Extents& e, const Scalars<T>& a, const T* b, std::int64_t b_pitch, const Start& start, float* c,
                      std::int64_t c_pitch, FetchAhead* ahead) {
  std::int64_t r = 0;
  const auto block = [&]<int R>() {
    multiply_block<W, kFar, R, V, T>(e.depth, {a.at + r * a.row, a.row, a.step}, b, b_pitch, start.from(r, 0), c + r * c_pitch,
                                     c_pitch);
  };
  for (; r + kRowsAtOnce <= e.rows; r += kRowsAtOnce) {
    if (ahead != nullptr) ahead->fetch(kLinesAtOnce);
    block.template operator()<kRowsAtOnce>();
  }
  switch (e.rows - r) {
    case 5: return block.template operator()<5>();
    case 4: return block.template operator()<4>();
    case 3: return block.template operator()<3>();
    case 2: return block.template operator()<2>();
    case 1: return block.template operator()<1>();
    default: return;
  }
}

// c [rows][columns] = start + a [rows, depth] b [depth][columns]. Meanwhile `ahead` fetches what comes next, unless it is null.
template <int W, bool kFar = false, class T>
void multiply(const Extents& e, const Scalars<T>& a, const T* b, std::int64_t b_pitch, const Start& start, float* c,
              std::int64_t c_pitch, FetchAhead* ahead = nullptr) {
  constexpr int kVectors = W == 16 ? 4 : 2;  // with kRowsAtOnce sums of each they fill the registers
  const auto columns = [&]<int V>(std::int64_t n) {
    multiply_columns<W, kFar, V, T>(e, a, b + n, b_pitch, start.from(0, n), c + n, c_pitch, ahead);
  };
  std::int64_t n = 0;
  for (; n + kVectors * W <= e.columns; n += kVectors * W) columns.template operator()<kVectors>(n);
  if constexpr (W == 16) {
    if (e.columns - n == 3 * W) return columns.template operator()<3>(n);
    if (e.columns - n == 2 * W) return columns.template operator()<2>(n);
  }
  if (e.columns - n == W) columns.template operator()<1>(n);
}

// The same, added to what is there with `add`.
template <int W, class T>
void multiply(const Extents& e, const Scalars<T>& a, const T* b, std::int64_t b_pitch, float* c, std::int64_t c_pitch, bool add,
              FetchAhead* ahead = nullptr) {
  multiply<W>(e, a, b, b_pitch, add ? Start{c, c_pitch} : Start{}, c, c_pitch, ahead);
}

}  // namespace
}  // namespace tessera::cpu
