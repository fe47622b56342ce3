// Kernels of layer norm and, where not centred, of RMS norm. Included like core/cpu/vectors.h.
#pragma once

#include <cmath>

#include "core/cpu/rows/walks.h"

namespace tessera::cpu::rows {
namespace {

template <int W>
[[gnu::always_inline]] inline float mean_of(const float* x, std::int64_t n) {
  Vec<W> sums[4]{};
  for_each_vector<W>(
      n, [&](int s, std::int64_t i, auto part) __attribute__((always_inline)) { sums[s] += row_part<W>(x, i, part); });
  return sum_of<W>(sums) * (1 / static_cast<float>(n));
}

template <int W, bool kCentred>
NormRow norm(const float* x, const float* gamma, const float* beta, std::int64_t n, double eps, Stores stores, float* y) {
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

template <int W, bool kCentred>
void norm_backward(const float* x, const float* g, const float* gamma, const NormRow& row, std::int64_t n, Stores stores,
                   float* grad_x) {
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
template <int W, int R, bool kCentred>
void add_norm_rows(const float* x, const float* g, const NormRow* rows, std::int64_t n, double* gamma, double* beta) {
  typedef double Wide __attribute__((vector_size(8 * W)));
  const auto add = [](const Vec<W>& sum, double* to) __attribute__((always_inline)) {
    Wide at;
    std::memcpy(&at, to, sizeof at);
    at += __builtin_convertvector(sum, Wide);
    std::memcpy(to, &at, sizeof at);
  };
  std::int64_t i = 0;
  for (; i + W <= n; i += W) {
    Vec<W> weighted{}, plain{};
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const Vec<W> here = load<W>(g + r * n + i);
      weighted += here * ((load<W>(x + r * n + i) - rows[r].mean) * rows[r].inv_std);
      plain += here;
    }
    add(weighted, gamma + i);
    if constexpr (kCentred) add(plain, beta + i);
  }
  for (; i < n; ++i) {
    float weighted = 0, plain = 0;
    for (int r = 0; r < R; ++r) {
      weighted += g[r * n + i] * ((x[r * n + i] - rows[r].mean) * rows[r].inv_std);
      plain += g[r * n + i];
    }
    gamma[i] += static_cast<double>(weighted);
    if constexpr (kCentred) beta[i] += static_cast<double>(plain);
  }
}

template <int W, bool kCentred>
void norm_parameters(const float* x, const float* g, const NormRow* rows, std::int64_t count, std::int64_t n, double* gamma,
                     double* beta) {
  std::int64_t r = 0;
  for (; r + 8 <= count; r += 8) add_norm_rows<W, 8, kCentred>(x + r * n, g + r * n, rows + r, n, gamma, beta);
  for (; r < count; ++r) add_norm_rows<W, 1, kCentred>(x + r * n, g + r * n, rows + r, n, gamma, beta);
}

template <int W, bool kCentred>
constexpr NormKernels norm_kernels() {
  return {norm<W, kCentred>, norm_backward<W, kCentred>, norm_parameters<W, kCentred>};
}

}  // namespace
}  // namespace tessera::cpu::rows
