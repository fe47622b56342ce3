// Kernels of layer norm and, where not centred, of RMS norm. Included like core/cpu/vectors.h.
#pragma once

#include <cmath>
#include <cstring>

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

// One row. With kSums its share of the gradients of gamma and beta is added to `gammas` and `betas` [n]. Those of gamma are
// summed in the first walk over the row and those of beta in the second, which halves the stores of the first.
template <int W, bool kCentred, bool kSums, class T>
void norm_backward_row(const T* x, const T* g, const float* gamma, const NormRow& row, std::int64_t n, Stores stores, T* grad_x,
                       [[maybe_unused]] float* gammas, [[maybe_unused]] float* betas) {
  const float share = 1 / static_cast<float>(n), mean = row.mean, inv_std = row.inv_std;
  Vec<W> plain[4]{}, weighted[4]{};
  for_each_vector<W>(
      n, [&](int s, std::int64_t i, auto part) __attribute__((always_inline)) {
        const Vec<W> grad = row_part<W>(g, i, part), scale = row_part<W>(gamma, i, part);
        const Vec<W> product = grad * (row_part<W>(x, i, part, mean) - mean);
        if constexpr (kCentred) plain[s] += grad * scale;
        weighted[s] += product * scale;
        if constexpr (kSums) add_part<W>(product * inv_std, i, part, gammas);
      });
  const float offset = kCentred ? sum_of<W>(plain) * share : 0.0F;
  const float slope = sum_of<W>(weighted) * inv_std * inv_std * share;
  write_all<W>(
      n, stores, grad_x, [&](std::int64_t i, auto part) __attribute__((always_inline)) {
        prefetch(x + n + i), prefetch(g + n + i);
        const Vec<W> grad = row_part<W>(g, i, part);
        if constexpr (kSums && kCentred) add_part<W>(grad, i, part, betas);
        return inv_std * (grad * row_part<W>(gamma, i, part) - offset - (row_part<W>(x, i, part) - mean) * slope);
      });
}

template <int W, bool kCentred, class T>
void norm_backward(const T* x, const T* g, const float* gamma, const NormRow* rows, std::int64_t count, std::int64_t n,
                   Stores stores, T* grad_x, float* scratch, double* gamma_sums, double* beta_sums) {
  if (gamma_sums == nullptr) {
    for (std::int64_t r = 0; r < count; ++r) {
      norm_backward_row<W, kCentred, false>(x + r * n, g + r * n, gamma, rows[r], n, stores, grad_x + r * n, nullptr, nullptr);
    }
    return;
  }
  float* const gammas = scratch;
  float* const betas = scratch + norm_scratch(n) / 2;
  std::memset(scratch, 0, static_cast<std::size_t>(norm_scratch(n)) * sizeof(float));
  for (std::int64_t r = 0; r < count; ++r) {
    norm_backward_row<W, kCentred, true>(x + r * n, g + r * n, gamma, rows[r], n, stores, grad_x + r * n, gammas, betas);
  }
  add_rows<W>(gammas, n, 1, n, gamma_sums);
  if constexpr (kCentred) add_rows<W>(betas, n, 1, n, beta_sums);
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
