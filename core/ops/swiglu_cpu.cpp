// Built with fast-math, which vectorises exp where core/cpu/rows has no kernel. Nothing here tests for NaN, and a NaN input gives
// a NaN output.
#include "core/compute_type.h"
#include "core/cpu/parallel.h"
#include "core/cpu/rows/problem.h"
#include "core/ops/swiglu.h"
#include "core/ops/swiglu_math.h"

namespace tessera::cpu {
namespace {

template <class T>
void forward_row(const T* x, std::int64_t n, rows::Stores stores, T* y) {
  if constexpr (!std::is_same_v<T, double>) {
    rows::kernels().of<T>().swiglu(x, n, stores, y);
  } else {
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) y[i] = swiglu_of(x[i], x[n + i]);
  }
}

template <class T>
void backward_row(const T* x, const T* g, std::int64_t n, rows::Stores stores, T* grad_x) {
  if constexpr (!std::is_same_v<T, double>) {
    rows::kernels().of<T>().swiglu_backward(x, g, n, stores, grad_x);
  } else {
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) {
      const SwigluGradient<T> grad = swiglu_gradient(x[i], x[n + i], g[i]);
      grad_x[i] = grad.gate;
      grad_x[n + i] = grad.value;
    }
  }
}

}  // namespace

void swiglu_forward(const Tensor& x, const Tensor& y) {
  const std::int64_t n = y.dim(1);
  const rows::Stores stores = rows::stores_for(static_cast<std::int64_t>(y.bytes()));
  dispatch_floating(x.dtype(), "swiglu", [&]<class T>() {
    parallel_rows(y.dim(0), n, [&](std::int64_t begin, std::int64_t end, int) {
      for (std::int64_t row = begin; row < end; ++row) {
        forward_row(x.data<T>() + row * 2 * n, n, stores, y.data<T>() + row * n);
      }
    });
  });
}

void swiglu_backward(const Tensor& x, const Tensor& grad_y, const Tensor& grad_x) {
  const std::int64_t n = grad_y.dim(1);
  const rows::Stores stores = rows::stores_for(static_cast<std::int64_t>(grad_x.bytes()));
  dispatch_floating(x.dtype(), "swiglu_backward", [&]<class T>() {
    parallel_rows(grad_y.dim(0), n, [&](std::int64_t begin, std::int64_t end, int) {
      for (std::int64_t row = begin; row < end; ++row) {
        backward_row(x.data<T>() + row * 2 * n, grad_y.data<T>() + row * n, n, stores, grad_x.data<T>() + row * 2 * n);
      }
    });
  });
}

}  // namespace tessera::cpu
