#include <cmath>
#include <vector>

#include "core/compute_type.h"
#include "core/cpu/parallel.h"
#include "core/ops/layer_norm.h"

namespace tessera::cpu {
namespace {

template <class Body>
void for_each_row_of(std::int64_t rows, std::int64_t columns, Body&& body) {
  parallel_rows(rows, columns, [&](std::int64_t begin, std::int64_t end, int part) {
    for (std::int64_t row = begin; row < end; ++row) body(row, part);
  });
}

template <class T, class C = Compute<T>>
void forward(const Tensor& x, const C* gamma, const C* beta, double eps, T* y, C* mean, C* inv_std) {
  const std::int64_t n = x.dim(1);
  const C share = C(1) / static_cast<C>(n);
  for_each_row_of(x.dim(0), n, [&](std::int64_t row, int) {
    const T* const from = x.data<T>() + row * n;
    T* const to = y + row * n;
    C sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::int64_t i = 0; i < n; ++i) sum += widen(from[i]);
    const C centre = sum * share;
    C squares = 0;
#pragma omp simd reduction(+ : squares)
    for (std::int64_t i = 0; i < n; ++i) squares += (widen(from[i]) - centre) * (widen(from[i]) - centre);
    const C scale = static_cast<C>(1.0 / std::sqrt(static_cast<double>(squares * share) + eps));
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) to[i] = narrow<T>((widen(from[i]) - centre) * scale * gamma[i] + beta[i]);
    mean[row] = centre;
    inv_std[row] = scale;
  });
}

template <class T, class C = Compute<T>>
void backward_input(const Tensor& x, const T* grad_y, const C* gamma, const C* mean, const C* inv_std, T* grad_x) {
  const std::int64_t n = x.dim(1);
  const C share = C(1) / static_cast<C>(n);
  for_each_row_of(x.dim(0), n, [&](std::int64_t row, int) {
    const T* const from = x.data<T>() + row * n;
    const T* const g = grad_y + row * n;
    T* const to = grad_x + row * n;
    const C centre = mean[row];
    const C scale = inv_std[row];
    C plain = 0;
    C weighted = 0;
#pragma omp simd reduction(+ : plain, weighted)
    for (std::int64_t i = 0; i < n; ++i) {
      const C a = widen(g[i]) * gamma[i];
      plain += a;
      weighted += a * (widen(from[i]) - centre);
    }
    const C offset = plain * share;
    const C slope = weighted * scale * scale * share;
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) {
      to[i] = narrow<T>(scale * (widen(g[i]) * gamma[i] - offset - (widen(from[i]) - centre) * slope));
    }
  });
}

// Every part sums its rows in double; the parts are joined in their order.
template <class T, class C = Compute<T>>
void backward_parameters(const Tensor& x, const T* grad_y, const C* mean, const C* inv_std, C* grad_gamma, C* grad_beta) {
  const std::int64_t n = x.dim(1);
  const auto width = static_cast<std::size_t>(n);
  std::vector<double> gammas(static_cast<std::size_t>(row_parts(x.dim(0), n)) * width);
  std::vector<double> betas(gammas.size());
  for_each_row_of(x.dim(0), n, [&](std::int64_t row, int part) {
    const T* const from = x.data<T>() + row * n;
    const T* const g = grad_y + row * n;
    double* const gamma = gammas.data() + static_cast<std::size_t>(part) * width;
    double* const beta = betas.data() + static_cast<std::size_t>(part) * width;
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) {
      gamma[i] += static_cast<double>(widen(g[i]) * (widen(from[i]) - mean[row]) * inv_std[row]);
      beta[i] += static_cast<double>(widen(g[i]));
    }
  });
  for (std::size_t i = 0; i < width; ++i) {
    double gamma = 0;
    double beta = 0;
    for (std::size_t at = i; at < gammas.size(); at += width) {
      gamma += gammas[at];
      beta += betas[at];
    }
    grad_gamma[i] = static_cast<C>(gamma);
    grad_beta[i] = static_cast<C>(beta);
  }
}

}  // namespace

void layer_norm_forward(const Tensor& x, const Tensor& gamma, const Tensor& beta, double eps, const Tensor& y, const Tensor& mean,
                        const Tensor& inv_std) {
  dispatch_floating(x.dtype(), "layer_norm", [&]<class T>() {
    using C = Compute<T>;
    forward<T>(x, gamma.data<C>(), beta.data<C>(), eps, y.data<T>(), mean.data<C>(), inv_std.data<C>());
  });
}

void layer_norm_backward_input(const Tensor& x, const Tensor& grad_y, const Tensor& gamma, const Tensor& mean,
                               const Tensor& inv_std, const Tensor& grad_x) {
  dispatch_floating(x.dtype(), "layer_norm", [&]<class T>() {
    using C = Compute<T>;
    backward_input<T>(x, grad_y.data<T>(), gamma.data<C>(), mean.data<C>(), inv_std.data<C>(), grad_x.data<T>());
  });
}

void layer_norm_backward_parameters(const Tensor& x, const Tensor& grad_y, const Tensor& mean, const Tensor& inv_std,
                                    const Tensor& grad_gamma, const Tensor& grad_beta) {
  dispatch_floating(x.dtype(), "layer_norm", [&]<class T>() {
    using C = Compute<T>;
    backward_parameters<T>(x, grad_y.data<T>(), mean.data<C>(), inv_std.data<C>(), grad_gamma.data<C>(), grad_beta.data<C>());
  });
}

}  // namespace tessera::cpu
