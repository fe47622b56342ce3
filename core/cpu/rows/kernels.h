// Included only by the files that build it for one instruction set each; W, the lanes of a vector, tells their instances apart.
#pragma once

#include <algorithm>
#include <cmath>

#include "core/cpu/rows/elementwise.h"
#include "core/cpu/rows/norm.h"
#include "core/cpu/rows/sums.h"

namespace tessera::cpu::rows {
namespace {

template <int W>
float top_of(const float* x, std::int64_t n) {
  Vec<W> top[4];
  for (Vec<W>& v : top) v = Vec<W>{} + x[0];
  for_each_vector<W>(
      n, [&](int s, std::int64_t i, auto part) __attribute__((always_inline)) {
        const Vec<W> v = row_part<W>(x, i, part, x[0]);
        top[s] = larger_of<W>(v, top[s]);
      });
  return largest_of<W>(top);
}

// exp(x - y) of two scalars, x <= y.
template <int W>
float exp_of_difference(float x, float y) {
  return exp_below<W>(Vec<W>{} + (x - y))[0];
}

// Lanes behind the end of the row count as numbers far below all others: their exponential is 0. A long row is read once: the
// largest element of each piece is found before the piece's exponentials are summed, and what was summed before is scaled to it.
// While a row has had nothing above -Inf, its sum is 0, or NaN.
template <int W>
ExpSum<float> exp_sum(const float* x, std::int64_t n) {
  constexpr std::int64_t kPiece = 2048;  // stays in the first cache
  float top = -INFINITY, total = 0;
  for (std::int64_t first = 0; first < n; first += kPiece) {
    const float* const piece = x + first;
    const std::int64_t count = std::min(kPiece, n - first);
    const float before = top, here = top_of<W>(piece, count);
    top = here > top || first == 0 ? here : top;
    const float base = top == -INFINITY && first + count < n ? 0.0F : top;
    Vec<W> sums[4]{};
    for_each_vector<W>(
        count, [&](int s, std::int64_t i, auto part) __attribute__((always_inline)) {
          prefetch(piece + count + i);
          sums[s] += exp_below<W>(row_part<W>(piece, i, part, -INFINITY) - base);
        });
    total = total * (before == -INFINITY ? 1 : exp_of_difference<W>(before, top)) + sum_of<W>(sums);
  }
  return {top, total};
}

constexpr std::int64_t kHeld = 4096;  // exponentials that stay in the first cache; longer rows compute them twice

// With kHolds the exponentials are kept; the row then has at most kHeld elements.
template <int W, bool kHolds>
ExpSum<float> softmax_of(const float* x, std::int64_t n, Stores stores, float* y) {
  const float top = top_of<W>(x, n);
  alignas(64) float held[kHolds ? kHeld : 1];
  Vec<W> sums[4]{};
  for_each_vector<W>(
      n, [&](int s, std::int64_t i, auto part) __attribute__((always_inline)) {
        const Vec<W> e = exp_below<W>(row_part<W>(x, i, part, -INFINITY) - top);
        prefetch(x + n + i);
        sums[s] += e;
        if constexpr (kHolds) store<W>(e, held + i);
      });
  const float total = sum_of<W>(sums), scale = 1 / total;
  if constexpr (kHolds) {
    map<W>(
        held, n, stores, y, [&](const Vec<W>& e) __attribute__((always_inline)) { return e * scale; });
  } else {
    map<W>(
        x, n, stores, y, [&](const Vec<W>& v) __attribute__((always_inline)) { return exp_below<W>(v - top) * scale; });
  }
  return {top, total};
}

template <int W>
ExpSum<float> softmax(const float* x, std::int64_t n, Stores stores, float* y) {
  return n <= kHeld ? softmax_of<W, true>(x, n, stores, y) : softmax_of<W, false>(x, n, stores, y);
}

template <int W>
void cross_entropy_backward(const float* x, std::int64_t n, const CrossEntropyRow& row, Stores stores, float* grad_x) {
  const float top = row.sum.top, slope = row.scale / row.sum.total, constant = row.scale * -row.even;
  write_all<W>(
      n, stores, grad_x, [&](std::int64_t i, auto part) __attribute__((always_inline)) {
        Vec<W> v = exp_below<W>(row_part<W>(x, i, part) - top) * slope + constant;
        // Here and not behind the row: what went past the caches would be read again.
        if (row.label >= i && row.label < i + W) [[unlikely]]
          v[row.label - i] -= row.scale * row.picked;
        return v;
      });
}

template <int W>
void softmax_backward(const float* y, const float* g, std::int64_t n, float scale, Stores stores, float* grad_x) {
  Vec<W> sums[4]{};
  for_each_vector<W>(
      n, [&](int s, std::int64_t i, auto part)
             __attribute__((always_inline)) { sums[s] += row_part<W>(y, i, part) * row_part<W>(g, i, part); });
  const float dot = sum_of<W>(sums);
  map<W>(
      y, g, n, stores,
      grad_x, [&](const Vec<W>& v, const Vec<W>& grad) __attribute__((always_inline)) { return scale * v * (grad - dot); });
}

// Dot products of a row and V vectors, as vectors whose lanes are still to be added.
template <int W, int V, class T>
[[gnu::always_inline]] inline void lanes_of_dots(const T* row, std::int64_t n, const float* x, std::int64_t pitch,
                                                 Vec<W>* lanes) {
  Vec<W> sums[V][4]{};
  for_each_vector<W>(
      n, [&](int s, std::int64_t i, auto part) __attribute__((always_inline)) {
        const Vec<W> a = row_part<W>(row, i, part);
#pragma GCC unroll 4
        for (int v = 0; v < V; ++v) sums[v][s] += a * row_part<W>(x + v * pitch, i, part);
      });
#pragma GCC unroll 4
  for (int v = 0; v < V; ++v) lanes[v] = (sums[v][0] + sums[v][1]) + (sums[v][2] + sums[v][3]);
}

template <int W, int V, class T>
void dots_of_vectors(const T* const* rows, std::int64_t count, std::int64_t n, const float* x, std::int64_t pitch, float* dots) {
  std::int64_t r = 0;
  if constexpr (V == 1) {
    for (; r + 4 <= count; r += 4) {
      Vec<W> lanes[4];
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) lanes_of_dots<W, 1>(rows[r + i], n, x, pitch, lanes + i);
      store<4>(lane_sums<W>(lanes), dots + r);
    }
  }
  for (; r < count; ++r) {
    Vec<W> lanes[V];
    lanes_of_dots<W, V>(rows[r], n, x, pitch, lanes);
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) dots[r * V + v] = lane_sum<W>(lanes[v]);
  }
}

template <int W, class T>
void dots(const T* const* rows, std::int64_t count, std::int64_t n, const float* x, std::int64_t pitch, int vectors,
          float* dots) {
  switch (vectors) {
    case 1: return dots_of_vectors<W, 1>(rows, count, n, x, pitch, dots);
    case 2: return dots_of_vectors<W, 2>(rows, count, n, x, pitch, dots);
    case 3: return dots_of_vectors<W, 3>(rows, count, n, x, pitch, dots);
    default: return dots_of_vectors<W, kMostVectors>(rows, count, n, x, pitch, dots);
  }
}

template <int W, class T>
constexpr KernelsOf<T> kernels_of_elements() {
  return {.gelu_erf = rows::gelu_erf<W, T>,
          .gelu_tanh = rows::gelu_tanh<W, T>,
          .gelu_erf_backward = rows::gelu_erf_backward<W, T>,
          .gelu_tanh_backward = rows::gelu_tanh_backward<W, T>,
          .swiglu = rows::swiglu<W, T>,
          .swiglu_backward = rows::swiglu_backward<W, T>,
          .rotate = rows::rotate<W, T>,
          .layer_norm = norm_kernels<W, true, T>(),
          .rms_norm = norm_kernels<W, false, T>(),
          .dots = rows::dots<W, T>};
}

template <int W>
constexpr Kernels kernels_of() {
  return {.f32 = kernels_of_elements<W, float>(),
          .bf16 = kernels_of_elements<W, bfloat16>(),
          .exp_sum = rows::exp_sum<W>,
          .softmax = rows::softmax<W>,
          .cross_entropy_backward = rows::cross_entropy_backward<W>,
          .add_rows = rows::add_rows<W>,
          .softmax_backward = rows::softmax_backward<W>};
}

}  // namespace
}  // namespace tessera::cpu::rows
