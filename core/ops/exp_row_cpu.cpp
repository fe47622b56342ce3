// Built with fast-math, which vectorises exp. A NaN enters the sum, even if the comparisons of largest() ignore it.
#include "core/ops/exp_row_cpu.h"

#include <cmath>

namespace tessera::cpu {

template <class T>
T largest(const T* x, std::int64_t n) {
  T top = x[0];
#pragma omp simd reduction(max : top)
  for (std::int64_t i = 1; i < n; ++i) top = x[i] > top ? x[i] : top;
  return top;
}

rows::ExpSum<double> exp_row(const double* x, std::int64_t n, double* y) {
  const double top = largest(x, n);
  double total = 0;
#pragma omp simd reduction(+ : total)
  for (std::int64_t i = 0; i < n; ++i) total += y[i] = std::exp(x[i] - top);
  return {top, total};
}

template <>
void softmax_row(const float* x, std::int64_t n, rows::Stores stores, float* y) {
  rows::kernels().softmax(x, n, stores, y);
}

template <>
void softmax_row(const double* x, std::int64_t n, rows::Stores, double* y) {
  const double scale = 1 / exp_row(x, n, y).total;
  for (std::int64_t i = 0; i < n; ++i) y[i] *= scale;
}

template <>
void softmax_backward_row(const float* y, const float* g, std::int64_t n, float scale, rows::Stores stores, float* grad_x) {
  rows::kernels().softmax_backward(y, g, n, scale, stores, grad_x);
}

template <>
void softmax_backward_row(const double* y, const double* g, std::int64_t n, double scale, rows::Stores, double* grad_x) {
  double dot = 0;
#pragma omp simd reduction(+ : dot)
  for (std::int64_t i = 0; i < n; ++i) dot += g[i] * y[i];
  for (std::int64_t i = 0; i < n; ++i) grad_x[i] = scale * y[i] * (g[i] - dot);
}

template float largest(const float* x, std::int64_t n);
template double largest(const double* x, std::int64_t n);

}  // namespace tessera::cpu
