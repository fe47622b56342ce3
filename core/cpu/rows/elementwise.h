// Kernels of long arrays. Included like core/cpu/vectors.h.
#pragma once

#include "core/cpu/rows/walks.h"
#include "core/cpu/vector_math.h"

namespace tessera::cpu::rows {
namespace {

template <int W, class T>
void gelu_erf(const T* x, std::int64_t count, Stores stores, T* y) {
  map<W>(
      x, count, stores, y, [](const Vec<W>& v) __attribute__((always_inline)) { return v * normal_of<W>(v).below; });
}

template <int W, class T>
void gelu_erf_backward(const T* x, const T* g, std::int64_t count, Stores stores, T* grad_x) {
  map<W>(
      x, g, count, stores, grad_x, [](const Vec<W>& v, const Vec<W>& grad) __attribute__((always_inline)) {
        const Normal<W> normal = normal_of<W>(v);
        return grad * (normal.below + v * 0.398942280F * normal.power);
      });
}

// x (1 + tanh(u)) / 2 = x sigmoid(2 u), with u = sqrt(2 / pi) (x + 0.044715 x^3).
inline constexpr float kTwiceRoot = 1.59576912F, kCubic = 0.044715F;

template <int W, class T>
void gelu_tanh(const T* x, std::int64_t count, Stores stores, T* y) {
  map<W>(
      x, count, stores, y,
      [](const Vec<W>& v) __attribute__((always_inline)) { return v * sigmoid_of<W>(kTwiceRoot * v * (1.0F + kCubic * v * v)); });
}

template <int W, class T>
void gelu_tanh_backward(const T* x, const T* g, std::int64_t count, Stores stores, T* grad_x) {
  map<W>(
      x, g, count, stores, grad_x, [](const Vec<W>& v, const Vec<W>& grad) __attribute__((always_inline)) {
        const Vec<W> square = v * v;
        const Vec<W> s = sigmoid_of<W>(kTwiceRoot * v * (1.0F + kCubic * square));
        return grad * s * (1.0F + v * (1.0F - s) * kTwiceRoot * (1.0F + 3 * kCubic * square));
      });
}

template <int W, class T>
void swiglu(const T* x, std::int64_t n, Stores stores, T* y) {
  write_all<W>(
      n, stores, y, [&](std::int64_t i, auto part) __attribute__((always_inline)) {
        prefetch(x + 2 * n + i), prefetch(x + 3 * n + i);
        const Vec<W> gate = row_part<W>(x, i, part);
        return gate * sigmoid_of<W>(gate) * row_part<W>(x + n, i, part);
      });
}

template <int W, class T>
void swiglu_backward(const T* x, const T* g, std::int64_t n, Stores stores, T* grad_x) {
  write_pairs<W>(
      n, stores, grad_x, grad_x + n, [&](std::int64_t i, auto part) __attribute__((always_inline)) {
        prefetch(x + 2 * n + i), prefetch(x + 3 * n + i);
        const Vec<W> gate = row_part<W>(x, i, part), grad = row_part<W>(g, i, part);
        const Vec<W> s = sigmoid_of<W>(gate);
        return Pair<W>{grad * row_part<W>(x + n, i, part) * s * (1.0F + gate * (1.0F - s)), grad * gate * s};
      });
}

template <int W, class T>
void rotate(const T* x, const float* cosine, const float* sine, const HeadRow& row, float sign, Stores stores, T* y) {
  const std::int64_t n = row.half;
  for (std::int64_t first = 0; first < row.rotated * 2 * n; first += 2 * n) {
    write_pairs<W>(
        n, stores, y + first, y + first + n, [&](std::int64_t i, auto part) __attribute__((always_inline)) {
          const Vec<W> a = row_part<W>(x + first, i, part), b = row_part<W>(x + first + n, i, part);
          const Vec<W> c = row_part<W>(cosine, i, part), s = sign * row_part<W>(sine, i, part);
          return Pair<W>{a * c - b * s, b * c + a * s};
        });
  }
  const std::int64_t others = row.rotated * 2 * n;
  if (x != y) {
    map<W>(
        x + others, row.heads * 2 * n - others, stores, y + others,
        [](const Vec<W>& v) __attribute__((always_inline)) { return v; });
  }
}

}  // namespace
}  // namespace tessera::cpu::rows
