// Built with fast-math, which vectorises exp. A NaN enters the sum of its row, and with it every element of the result.
#include <algorithm>
#include <cmath>

#include "core/cpu/in_f32.h"
#include "core/cpu/parallel.h"
#include "core/cpu/rows/problem.h"
#include "core/ops/exp_row_cpu.h"
#include "core/ops/softmax.h"

namespace tessera::cpu {
namespace {

template <class T>
void log_softmax_row(const T* x, std::int64_t n, T* y) {
  const T top = largest(x, n);
  T total = 0;
#pragma omp simd reduction(+ : total)
  for (std::int64_t i = 0; i < n; ++i) total += std::exp(x[i] - top);
  const T log_total = std::log(total);
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) y[i] = x[i] - top - log_total;
}

template <class T>
void log_softmax_backward_row(const T* y, const T* g, std::int64_t n, T* grad_x) {
  T total = 0;
#pragma omp simd reduction(+ : total)
  for (std::int64_t i = 0; i < n; ++i) total += g[i];
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) grad_x[i] = g[i] - std::exp(y[i]) * total;
}

// Calls f.operator()<T>(offset, n) for every row, in parallel.
template <class F>
void for_each_last_row(const char* operation, const Tensor& x, F&& f) {
  if (x.numel() == 0) return;
  const std::int64_t n = x.dim(-1);
  dispatch_real(x.dtype(), operation, [&]<class T>() {
    parallel_for(x.numel() / n, std::max<std::int64_t>(1, kGrain / 4 / n), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) f.template operator()<T>(row * n, n);
    });
  });
}

}  // namespace

void softmax_forward(const Tensor& x, const Tensor& y) {
  if (x.dtype() == DType::bf16) return in_f32(softmax_forward, y, x);
  const rows::Stores stores = rows::stores_for(static_cast<std::int64_t>(y.bytes()));
  for_each_last_row("softmax", x, [&]<class T>(std::int64_t at, std::int64_t n) {
    softmax_row(x.data<T>() + at, n, stores, y.data<T>() + at);
  });
}

void softmax_backward(const Tensor& y, const Tensor& grad_y, const Tensor& grad_x) {
  if (y.dtype() == DType::bf16) return in_f32(softmax_backward, grad_x, y, grad_y);
  const rows::Stores stores = rows::stores_for(static_cast<std::int64_t>(grad_x.bytes()));
  for_each_last_row("softmax_backward", y, [&]<class T>(std::int64_t at, std::int64_t n) {
    softmax_backward_row(y.data<T>() + at, grad_y.data<T>() + at, n, T(1), stores, grad_x.data<T>() + at);
  });
}

void log_softmax_forward(const Tensor& x, const Tensor& y) {
  if (x.dtype() == DType::bf16) return in_f32(log_softmax_forward, y, x);
  for_each_last_row("log_softmax", x,
                    [&]<class T>(std::int64_t at, std::int64_t n) { log_softmax_row(x.data<T>() + at, n, y.data<T>() + at); });
}

void log_softmax_backward(const Tensor& y, const Tensor& grad_y, const Tensor& grad_x) {
  if (y.dtype() == DType::bf16) return in_f32(log_softmax_backward, grad_x, y, grad_y);
  for_each_last_row("log_softmax_backward", y, [&]<class T>(std::int64_t at, std::int64_t n) {
    log_softmax_backward_row(y.data<T>() + at, grad_y.data<T>() + at, n, grad_x.data<T>() + at);
  });
}

}  // namespace tessera::cpu
