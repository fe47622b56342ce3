#include <algorithm>
#include <cmath>
#include <vector>

#include "core/compute_type.h"
#include "core/cpu/parallel.h"
#include "core/cpu/rows/problem.h"
#include "core/ops/layer_norm.h"

namespace tessera::cpu {
namespace {

template <class Body>
void for_each_row_of(std::int64_t rows, std::int64_t columns, Body&& body) {
  parallel_rows(rows, columns, [&](std::int64_t begin, std::int64_t end, int part) {
    for (std::int64_t row = begin; row < end; ++row) body(row, part);
    rows::finish_stores();
  });
}

const rows::NormKernels& kernels_of(bool centred) { return centred ? rows::kernels().layer_norm : rows::kernels().rms_norm; }

// `beta` and `mean` are null in RMS norm.
template <class T, class C = Compute<T>>
void forward(const Tensor& x, const C* gamma, const C* beta, double eps, T* y, C* mean, C* inv_std) {
  const std::int64_t n = x.dim(1);
  const C share = C(1) / static_cast<C>(n);
  const rows::Stores stores = rows::stores_for(static_cast<std::int64_t>(x.bytes()));
  for_each_row_of(x.dim(0), n, [&](std::int64_t row, int) {
    const T* const from = x.data<T>() + row * n;
    T* const to = y + row * n;
    if constexpr (std::is_same_v<T, float>) {
      const rows::NormRow norm = kernels_of(mean != nullptr).forward(from, gamma, beta, n, eps, stores, to);
      if (mean != nullptr) mean[row] = norm.mean;
      inv_std[row] = norm.inv_std;
      return;
    }
    C sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::int64_t i = 0; i < n; ++i) sum += widen(from[i]);
    const C centre = mean != nullptr ? sum * share : C(0);
    C squares = 0;
#pragma omp simd reduction(+ : squares)
    for (std::int64_t i = 0; i < n; ++i) squares += (widen(from[i]) - centre) * (widen(from[i]) - centre);
    const C scale = static_cast<C>(1.0 / std::sqrt(static_cast<double>(squares * share) + eps));
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) {
      to[i] = narrow<T>((widen(from[i]) - centre) * scale * gamma[i] + (beta != nullptr ? beta[i] : C(0)));
    }
    if (mean != nullptr) mean[row] = centre;
    inv_std[row] = scale;
  });
}

// What a backward reads, and of one row the mean and inv_std.
template <class T, class C = Compute<T>>
struct Gradient {
  const T* x;
  const T* g;
  const C* gamma;
  const C* mean;  // null in RMS norm
  const C* inv_std;
  std::int64_t n;

  C mean_of(std::int64_t row) const { return mean != nullptr ? mean[row] : C(0); }
};

template <class T, class C = Compute<T>>
void input_row(const Gradient<T>& o, std::int64_t row, rows::Stores stores, T* to) {
  const T* const from = o.x + row * o.n;
  const T* const g = o.g + row * o.n;
  if constexpr (std::is_same_v<T, float>) {
    return kernels_of(o.mean != nullptr).backward(from, g, o.gamma, {o.mean_of(row), o.inv_std[row]}, o.n, stores, to);
  }
  const C* const gamma = o.gamma;
  const C share = C(1) / static_cast<C>(o.n);
  const C centre = o.mean_of(row);
  const C scale = o.inv_std[row];
  C plain = 0;
  C weighted = 0;
#pragma omp simd reduction(+ : plain, weighted)
  for (std::int64_t i = 0; i < o.n; ++i) {
    const C a = widen(g[i]) * gamma[i];
    plain += a;
    weighted += a * (widen(from[i]) - centre);
  }
  const C offset = o.mean != nullptr ? plain * share : C(0);
  const C slope = weighted * scale * scale * share;
#pragma omp simd
  for (std::int64_t i = 0; i < o.n; ++i) {
    to[i] = narrow<T>(scale * (widen(g[i]) * gamma[i] - offset - (widen(from[i]) - centre) * slope));
  }
}

// Rows that are summed before a column's doubles are touched: those weigh four times what a row does.
constexpr std::int64_t kRows = 8;

template <class T, std::int64_t Rows, class C = Compute<T>>
void add_rows(const Gradient<T>& o, std::int64_t row, double* gamma, double* beta) {
  const T* const from = o.x + row * o.n;
  const T* const g = o.g + row * o.n;
  C means[Rows];
  for (std::int64_t r = 0; r < Rows; ++r) means[r] = o.mean_of(row + r);
#pragma omp simd
  for (std::int64_t i = 0; i < o.n; ++i) {
    C weighted = 0;
    C plain = 0;
#pragma GCC unroll 8
    for (std::int64_t r = 0; r < Rows; ++r) {
      const C here = widen(g[r * o.n + i]);
      weighted += here * ((widen(from[r * o.n + i]) - means[r]) * o.inv_std[row + r]);
      plain += here;
    }
    gamma[i] += static_cast<double>(weighted);
    beta[i] += static_cast<double>(plain);
  }
}

// Sums of the parts, [parts][n], joined in their order.
template <class C>
void join(const std::vector<double>& parts, std::int64_t n, C* to) {
  const auto width = static_cast<std::size_t>(n);
  for (std::size_t i = 0; i < width; ++i) {
    double sum = 0;
    for (std::size_t at = i; at < parts.size(); at += width) sum += parts[at];
    to[i] = static_cast<C>(sum);
  }
}

// One walk over memory for all gradients: a few rows stay in cache between theirs. `grad_x` or `grad_gamma` may be null.
template <class T, class C = Compute<T>>
void backward(const Gradient<T>& o, std::int64_t rows, T* grad_x, C* grad_gamma, C* grad_beta) {
  const auto width = static_cast<std::size_t>(o.n);
  std::vector<double> gammas(grad_gamma != nullptr ? static_cast<std::size_t>(row_parts(rows, o.n)) * width : 0);
  std::vector<double> betas(gammas.size());
  const rows::Stores stores = rows::stores_for(rows * o.n * static_cast<std::int64_t>(sizeof(T)));
  parallel_rows(rows, o.n, [&](std::int64_t begin, std::int64_t end, int part) {
    double* const gamma = gammas.data() + (gammas.empty() ? 0 : static_cast<std::size_t>(part) * width);
    double* const beta = betas.data() + (gamma - gammas.data());
    for (std::int64_t first = begin; first < end; first += kRows) {
      const std::int64_t last = std::min(first + kRows, end);
      for (std::int64_t row = first; grad_x != nullptr && row < last; ++row) input_row(o, row, stores, grad_x + row * o.n);
      if (gammas.empty()) continue;
      if constexpr (std::is_same_v<T, float>) {
        rows::NormRow norms[kRows];
        for (std::int64_t row = first; row < last; ++row) norms[row - first] = {o.mean_of(row), o.inv_std[row]};
        kernels_of(o.mean != nullptr).parameters(o.x + first * o.n, o.g + first * o.n, norms, last - first, o.n, gamma, beta);
        continue;
      }
      if (last - first == kRows) {
        add_rows<T, kRows>(o, first, gamma, beta);
      } else {
        for (std::int64_t row = first; row < last; ++row) add_rows<T, 1>(o, row, gamma, beta);
      }
    }
    rows::finish_stores();
  });
  if (grad_gamma == nullptr) return;
  join(gammas, o.n, grad_gamma);
  if (grad_beta != nullptr) join(betas, o.n, grad_beta);
}

}  // namespace

void layer_norm_forward(const Tensor& x, const Tensor& gamma, const Tensor& beta, double eps, const Tensor& y, const Tensor& mean,
                        const Tensor& inv_std) {
  dispatch_floating(x.dtype(), "layer_norm", [&]<class T>() {
    using C = Compute<T>;
    forward<T>(x, gamma.data<C>(), static_cast<C*>(beta.raw()), eps, y.data<T>(), static_cast<C*>(mean.raw()), inv_std.data<C>());
  });
}

void layer_norm_backward(const Tensor& x, const Tensor& grad_y, const Tensor& gamma, const Tensor& mean, const Tensor& inv_std,
                         const Tensor& grad_x, const Tensor& grad_gamma, const Tensor& grad_beta) {
  dispatch_floating(x.dtype(), "layer_norm", [&]<class T>() {
    using C = Compute<T>;
    const Gradient<T> o{x.data<T>(),       grad_y.data<T>(), gamma.data<C>(), static_cast<const C*>(mean.raw()),
                        inv_std.data<C>(), x.dim(1)};
    backward<T>(o, x.dim(0), static_cast<T*>(grad_x.raw()), static_cast<C*>(grad_gamma.raw()), static_cast<C*>(grad_beta.raw()));
  });
}

}  // namespace tessera::cpu
