// Included only by the files that build it for one instruction set each; W, the lanes of a vector, tells their instances apart.
#pragma once

#include <cmath>

#include "core/cpu/rows/elementwise.h"

namespace tessera::cpu::rows {
namespace {

template <int W>
float top_of(const float* x, std::int64_t n) {
  Vec<W> top[4];
  for (Vec<W>& v : top) v = Vec<W>{} + x[0];
  for_each_vector<W>(
      n, [&](int s, std::int64_t i, std::int64_t lanes) __attribute__((always_inline)) {
        const Vec<W> v = row_part<W>(x, i, lanes, x[0]);
        top[s] = v > top[s] ? v : top[s];
      });
  return largest_of<W>(top);
}

// What lies behind the row is far below: its exponential is 0.
template <int W>
ExpSum exp_sum(const float* x, std::int64_t n) {
  const float top = top_of<W>(x, n);
  Vec<W> sums[4]{};
  for_each_vector<W>(
      n, [&](int s, std::int64_t i, std::int64_t lanes)
             __attribute__((always_inline)) { sums[s] += exp_of<W>(row_part<W>(x, i, lanes, -INFINITY) - top); });
  return {top, sum_of<W>(sums)};
}

template <int W>
ExpSum softmax(const float* x, std::int64_t n, Stores stores, float* y) {
  const float top = top_of<W>(x, n);
  constexpr std::int64_t kHeld = 4096;  // exponentials that stay in the first cache; longer rows compute them twice
  alignas(64) float held[kHeld];
  const bool holds = n <= kHeld;
  Vec<W> sums[4]{};
  for_each_vector<W>(
      n, [&](int s, std::int64_t i, std::int64_t lanes) __attribute__((always_inline)) {
        const Vec<W> e = exp_of<W>(row_part<W>(x, i, lanes, -INFINITY) - top);
        sums[s] += e;
        if (holds) lanes == W ? store<W>(e, held + i) : store_part<W>(e, lanes, held + i);
      });
  const float total = sum_of<W>(sums), scale = 1 / total;
  if (holds) {
    map<W>(
        held, n, stores, y, [&](const Vec<W>& e) __attribute__((always_inline)) { return e * scale; });
  } else {
    map<W>(
        x, n, stores, y, [&](const Vec<W>& v) __attribute__((always_inline)) { return exp_of<W>(v - top) * scale; });
  }
  return {top, total};
}

template <int W>
void softmax_backward(const float* y, const float* g, std::int64_t n, float scale, Stores stores, float* grad_x) {
  Vec<W> sums[4]{};
  for_each_vector<W>(
      n, [&](int s, std::int64_t i, std::int64_t lanes)
             __attribute__((always_inline)) { sums[s] += row_part<W>(y, i, lanes, 0) * row_part<W>(g, i, lanes, 0); });
  const float dot = sum_of<W>(sums);
  map<W>(
      y, g, n, stores,
      grad_x, [&](const Vec<W>& v, const Vec<W>& grad) __attribute__((always_inline)) { return scale * v * (grad - dot); });
}

template <int W>
NormRow layer_norm(const float* x, const float* gamma, const float* beta, std::int64_t n, double eps, Stores stores, float* y) {
  const float share = 1 / static_cast<float>(n);
  Vec<W> sums[4]{};
  for_each_vector<W>(
      n, [&](int s, std::int64_t i, std::int64_t lanes)
             __attribute__((always_inline)) { sums[s] += row_part<W>(x, i, lanes, 0); });
  const float mean = sum_of<W>(sums) * share;
  Vec<W> squares[4]{};
  for_each_vector<W>(
      n, [&](int s, std::int64_t i, std::int64_t lanes) __attribute__((always_inline)) {
        const Vec<W> d = row_part<W>(x, i, lanes, mean) - mean;
        squares[s] += d * d;
      });
  const float variance = sum_of<W>(squares) * share;
  const auto inv_std = static_cast<float>(1.0 / std::sqrt(static_cast<double>(variance) + eps));
  write_all<W>(
      n, stores, y, [&](std::int64_t i) __attribute__((always_inline)) {
        return (load<W>(x + i) - mean) * inv_std * load<W>(gamma + i) + load<W>(beta + i);
      });
  for (std::int64_t i = n / W * W; i < n; ++i) y[i] = (x[i] - mean) * inv_std * gamma[i] + beta[i];
  return {mean, inv_std};
}

template <int W>
void layer_norm_backward(const float* x, const float* g, const float* gamma, const NormRow& row, std::int64_t n, Stores stores,
                         float* grad_x) {
  const float share = 1 / static_cast<float>(n), mean = row.mean, inv_std = row.inv_std;
  Vec<W> plain[4]{}, weighted[4]{};
  for_each_vector<W>(
      n, [&](int s, std::int64_t i, std::int64_t lanes) __attribute__((always_inline)) {
        const Vec<W> a = row_part<W>(g, i, lanes, 0) * row_part<W>(gamma, i, lanes, 0);
        plain[s] += a;
        weighted[s] += a * (row_part<W>(x, i, lanes, mean) - mean);
      });
  const float offset = sum_of<W>(plain) * share;
  const float slope = sum_of<W>(weighted) * inv_std * inv_std * share;
  write_all<W>(
      n, stores, grad_x, [&](std::int64_t i) __attribute__((always_inline)) {
        return inv_std * (load<W>(g + i) * load<W>(gamma + i) - offset - (load<W>(x + i) - mean) * slope);
      });
  for (std::int64_t i = n / W * W; i < n; ++i) grad_x[i] = inv_std * (g[i] * gamma[i] - offset - (x[i] - mean) * slope);
}

// Adds the sums over R rows to doubles, which weigh more than a row does.
template <int W, int R>
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
    add(plain, beta + i);
  }
  for (; i < n; ++i) {
    float weighted = 0, plain = 0;
    for (int r = 0; r < R; ++r) {
      weighted += g[r * n + i] * ((x[r * n + i] - rows[r].mean) * rows[r].inv_std);
      plain += g[r * n + i];
    }
    gamma[i] += static_cast<double>(weighted);
    beta[i] += static_cast<double>(plain);
  }
}

template <int W>
void layer_norm_parameters(const float* x, const float* g, const NormRow* rows, std::int64_t count, std::int64_t n, double* gamma,
                           double* beta) {
  std::int64_t r = 0;
  for (; r + 8 <= count; r += 8) add_norm_rows<W, 8>(x + r * n, g + r * n, rows + r, n, gamma, beta);
  for (; r < count; ++r) add_norm_rows<W, 1>(x + r * n, g + r * n, rows + r, n, gamma, beta);
}

template <int W>
constexpr Kernels kernels_of() {
  return {.gelu_erf = rows::gelu_erf<W>,
          .gelu_tanh = rows::gelu_tanh<W>,
          .gelu_erf_backward = rows::gelu_erf_backward<W>,
          .gelu_tanh_backward = rows::gelu_tanh_backward<W>,
          .swiglu = rows::swiglu<W>,
          .swiglu_backward = rows::swiglu_backward<W>,
          .shift_and_scale = rows::shift_and_scale<W>,
          .exp_sum = rows::exp_sum<W>,
          .softmax = rows::softmax<W>,
          .softmax_backward = rows::softmax_backward<W>,
          .layer_norm = rows::layer_norm<W>,
          .layer_norm_backward = rows::layer_norm_backward<W>,
          .layer_norm_parameters = rows::layer_norm_parameters<W>};
}

}  // namespace
}  // namespace tessera::cpu::rows
