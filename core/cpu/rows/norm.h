// Kernels of layer norm and, where not centred, of RMS norm. Included like core/cpu/vectors.h.
#pragma once

#include <cmath>

#include "core/cpu/rows/sums.h"
#include "core/cpu/rows/walks.h"

namespace tessera::cpu::rows {
namespace {

template <int W, class T>
[[gnu::always_inline]] inline float mean_of(const T* x, std::int64_t n) {
  Vec<W> sums[4]{};
  for_each_vector<W>(
      n, [&](int s, std::int64_t i, auto part) __attribute__((always_inline)) { sums[s] += row_part<W>(x, i, part); });
  return sum_of<W>(sums) * (1 / static_cast<float>(n));
}

template <int W, bool kCentred, class T>
NormRow norm(const T* x, const float* gamma, const float* beta, std::int64_t n, double eps, Stores stores, T* y) {
  const float mean = kCentred ? mean_of<W>(x, n) : 0.0F;
  Vec<W> squares[4]{};
  for_each_vector<W>(
      n, [&](int s, std::int64_t i, auto part) __attribute__((always_inline)) {
        const Vec<W> d = row_part<W>(x, i, part, mean) - mean;
        squares[s] += d * d;
      });
  const float variance = sum_of<W>(squares) * (1 / static_cast<float>(n));
  const auto inv_std = static_cast<float>(1.0 / std::sqrt(static_cast<double>(variance) + eps));
  write_all<W>(
      n, stores, y, [&](std::int64_t i, auto part) __attribute__((always_inline)) {
        prefetch(x + n + i);
        const Vec<W> scaled = (row_part<W>(x, i, part) - mean) * inv_std * row_part<W>(gamma, i, part);
        if constexpr (kCentred) return scaled + row_part<W>(beta, i, part);
        return scaled;
      });
  return {mean, inv_std};
}

template <int W, bool kCentred, class T>
void norm_backward(const T* x, const T* g, const float* gamma, const NormRow& row, std::int64_t n, Stores stores, T* grad_x) {
  const float share = 1 / static_cast<float>(n), mean = row.mean, inv_std = row.inv_std;
  Vec<W> plain[4]{}, weighted[4]{};
  for_each_vector<W>(
      n, [&](int s, std::int64_t i, auto part) __attribute__((always_inline)) {
        const Vec<W> a = row_part<W>(g, i, part) * row_part<W>(gamma, i, part);
        if constexpr (kCentred) plain[s] += a;
        weighted[s] += a * (row_part<W>(x, i, part, mean) - mean);
      });
  const float offset = kCentred ? sum_of<W>(plain) * share : 0.0F;
  const float slope = sum_of<W>(weighted) * inv_std * inv_std * share;
  write_all<W>(
      n, stores, grad_x, [&](std::int64_t i, auto part) __attribute__((always_inline)) {
        prefetch(x + n + i), prefetch(g + n + i);
        const Vec<W> a = row_part<W>(g, i, part) * row_part<W>(gamma, i, part);
        return inv_std * (a - offset - (row_part<W>(x, i, part) - mean) * slope);
      });
}

// Adds the sums over R rows to doubles, which weigh more than a row does.
template <int W, int R, bool kCentred, class T>
void add_norm_rows(const T* x, const T* g, const NormRow* rows, std::int64_t n, double* gamma, double* beta) {
  const auto sums = [&](std::int64_t i, auto part, Vec<W>& weighted, Vec<W>& plain) __attribute__((always_inline)) {
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const Vec<W> here = row_part<W>(g + r * n, i, part);
      weighted += here * ((row_part<W>(x + r * n, i, part) - rows[r].mean) * rows[r].inv_std);
      plain += here;
    }
  };
  std::int64_t i = 0;
  for (; i + W <= n; i += W) {
    Vec<W> weighted{}, plain{};
    sums(i, Whole(), weighted, plain);
    add_to<W>(gamma + i, weighted);
    if constexpr (kCentred) add_to<W>(beta + i, plain);
  }
  if (i == n) return;
  Vec<W> weighted{}, plain{};
  sums(i, Part{n - i}, weighted, plain);
  for (std::int64_t at = i; at < n; ++at) {
    gamma[at] += static_cast<double>(weighted[at - i]);
    if constexpr (kCentred) beta[at] += static_cast<double>(plain[at - i]);
  }
}

template <int W, bool kCentred, class T>
void norm_parameters(const T* x, const T* g, const NormRow* rows, std::int64_t count, std::int64_t n, double* gamma,
                     double* beta) {
  std::int64_t r = 0;
  for (; r + 8 <= count; r += 8) add_norm_rows<W, 8, kCentred>(x + r * n, g + r * n, rows + r, n, gamma, beta);
  for (; r < count; ++r) add_norm_rows<W, 1, kCentred>(x + r * n, g + r * n, rows + r, n, gamma, beta);
}

template <int W, bool kCentred, class T>
constexpr NormKernels<T> norm_kernels() {
  return {norm<W, kCentred, T>, norm_backward<W, kCentred, T>, norm_parameters<W, kCentred, T>};
}

}  // namespace
}  // namespace tessera::cpu::rows
