// Small dense products in registers, of a matrix read element by element with one read in vectors. Elements are floats, or pairs
// of bf16 (pairs.h): then the depth counts pairs. Included like kernels.h.
#pragma once

#include <cstdint>

#include "core/cpu/attention/pairs.h"
#include "core/cpu/vectors.h"

namespace tessera::cpu::attention {
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

template <int W, int R, int V, class T>
void multiply_block(std::int64_t depth, const Scalars<T>& a, const T* b, std::int64_t b_pitch, float* c, std::int64_t c_pitch,
                    bool add) {
  Vec<W> sum[R][V]{};
  if (add) {
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) sum[r][v] = load<W>(c + r * c_pitch + v * W);
    }
  }
  const T* row[R];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) row[r] = a.at + r * a.row;
  for (std::int64_t k = 0; k < depth; ++k) {
    Vec<W> x[V];
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) x[v] = load_operand<W>(b + k * b_pitch + v * W);
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

inline constexpr int kRows = 6;  // of sums in registers

template <int W, int V, class T>
void multiply_columns(const Extents& e, const Scalars<T>& a, const T* b, std::int64_t b_pitch, float* c, std::int64_t c_pitch,
                      bool add) {
  std::int64_t r = 0;
  const auto block = [&]<int R>() {
    multiply_block<W, R, V, T>(e.depth, {a.at + r * a.row, a.row, a.step}, b, b_pitch, c + r * c_pitch, c_pitch, add);
  };
  for (; r + kRows <= e.rows; r += kRows) block.template operator()<kRows>();
  switch (e.rows - r) {
    case 5: return block.template operator()<5>();
    case 4: return block.template operator()<4>();
    case 3: return block.template operator()<3>();
    case 2: return block.template operator()<2>();
    case 1: return block.template operator()<1>();
    default: return;
  }
}

// c [rows][columns] = a [rows, depth] b [depth][columns], added to what is there with `add`.
template <int W, class T>
void multiply(const Extents& e, const Scalars<T>& a, const T* b, std::int64_t b_pitch, float* c, std::int64_t c_pitch, bool add) {
  constexpr int kVectors = W == 16 ? 4 : 2;  // with kRows sums of each they fill the registers
  std::int64_t n = 0;
  for (; n + kVectors * W <= e.columns; n += kVectors * W) {
    multiply_columns<W, kVectors, T>(e, a, b + n, b_pitch, c + n, c_pitch, add);
  }
  if constexpr (W == 16) {
    if (e.columns - n == 3 * W) return multiply_columns<W, 3, T>(e, a, b + n, b_pitch, c + n, c_pitch, add);
    if (e.columns - n == 2 * W) return multiply_columns<W, 2, T>(e, a, b + n, b_pitch, c + n, c_pitch, add);
  }
  if (e.columns - n == W) multiply_columns<W, 1, T>(e, a, b + n, b_pitch, c + n, c_pitch, add);
}

}  // namespace
}  // namespace tessera::cpu::attention
