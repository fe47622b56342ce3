#include <algorithm>
#include <cmath>
#include <vector>

#include "core/compute_type.h"
#include "core/cpu/parallel.h"
#include "core/cpu/rows/problem.h"
#include "core/ops/layer_norm.h"

namespace tessera::cpu {
namespace {

template <bool kCentred>
const rows::NormKernels& kernels_of() {
  return kCentred ? rows::kernels().layer_norm : rows::kernels().rms_norm;
}

template <class C>
struct Statistics {
  C mean, inv_std;
};

// Of layer norm, or of RMS norm where not centred: its mean is 0, and it has no beta.
template <bool kCentred, class T, class C = Compute<T>>
Statistics<C> forward_row(const T* x, const C* gamma, [[maybe_unused]] const C* beta, std::int64_t n, double eps,
                          rows::Stores stores, T* y) {
  if constexpr (std::is_same_v<T, float>) {
    const rows::NormRow norm = kernels_of<kCentred>().forward(x, gamma, beta, n, eps, stores, y);
    return {norm.mean, norm.inv_std};
  } else {
    const C share = C(1) / static_cast<C>(n);
    C mean = 0;
    if constexpr (kCentred) {
      C sum = 0;
#pragma omp simd reduction(+ : sum)
      for (std::int64_t i = 0; i < n; ++i) sum += widen(x[i]);
      mean = sum * share;
    }
    C squares = 0;
#pragma omp simd reduction(+ : squares)
    for (std::int64_t i = 0; i < n; ++i) squares += (widen(x[i]) - mean) * (widen(x[i]) - mean);
    const C scale = static_cast<C>(1.0 / std::sqrt(static_cast<double>(squares * share) + eps));
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) {
      C result = (widen(x[i]) - mean) * scale * gamma[i];
      if constexpr (kCentred) result += beta[i];
      y[i] = narrow<T>(result);
    }
    return {mean, scale};
  }
}

template <bool kCentred, class T, class C = Compute<T>>
void forward(const Tensor& x, const C* gamma, const C* beta, double eps, T* y, C* mean, C* inv_std) {
  const std::int64_t n = x.dim(1);
  const rows::Stores stores = rows::stores_for(static_cast<std::int64_t>(x.bytes()));
  parallel_rows(x.dim(0), n, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t row = begin; row < end; ++row) {
      const auto found = forward_row<kCentred>(x.data<T>() + row * n, gamma, beta, n, eps, stores, y + row * n);
      if constexpr (kCentred) mean[row] = found.mean;
      inv_std[row] = found.inv_std;
    }
  });
}

// What a backward reads, and of one row the mean and inv_std.
template <bool kCentred, class T>
struct Gradient {
  using C = Compute<T>;
  const T* x;
  const T* g;
  const C* gamma;
  const C* mean;  // null in RMS norm
  const C* inv_std;
  std::int64_t n;

  C mean_of([[maybe_unused]] std::int64_t row) const {
    if constexpr (kCentred) return mean[row];
    return 0;
  }
};

template <bool kCentred, class T>
void input_row(const Gradient<kCentred, T>& o, std::int64_t row, rows::Stores stores, T* to) {
  using C = Compute<T>;
  const T* const from = o.x + row * o.n;
  const T* const g = o.g + row * o.n;
  const C mean = o.mean_of(row), scale = o.inv_std[row];
  if constexpr (std::is_same_v<T, float>) {
    kernels_of<kCentred>().backward(from, g, o.gamma, {mean, scale}, o.n, stores, to);
  } else {
    const C* const gamma = o.gamma;
    const C share = C(1) / static_cast<C>(o.n);
    C plain = 0;
    C weighted = 0;
#pragma omp simd reduction(+ : plain, weighted)
    for (std::int64_t i = 0; i < o.n; ++i) {
      const C a = widen(g[i]) * gamma[i];
      if constexpr (kCentred) plain += a;
      weighted += a * (widen(from[i]) - mean);
    }
    const C offset = kCentred ? plain * share : C(0);
    const C slope = weighted * scale * scale * share;
#pragma omp simd
    for (std::int64_t i = 0; i < o.n; ++i) {
      to[i] = narrow<T>(scale * (widen(g[i]) * gamma[i] - offset - (widen(from[i]) - mean) * slope));
    }
  }
}

// Rows that are summed before a column's doubles are touched: those weigh four times what a row does.
constexpr std::int64_t kRows = 8;

template <std::int64_t kCount, bool kCentred, class T>
void add_rows(const Gradient<kCentred, T>& o, std::int64_t row, double* gamma, [[maybe_unused]] double* beta) {
  using C = Compute<T>;
  const T* const from = o.x + row * o.n;
  const T* const g = o.g + row * o.n;
  C means[kCount];
  for (std::int64_t r = 0; r < kCount; ++r) means[r] = o.mean_of(row + r);
#pragma omp simd
  for (std::int64_t i = 0; i < o.n; ++i) {
    C weighted = 0;
    C plain = 0;
#pragma GCC unroll 8
    for (std::int64_t r = 0; r < kCount; ++r) {
      const C here = widen(g[r * o.n + i]);
      weighted += here * ((widen(from[r * o.n + i]) - means[r]) * o.inv_std[row + r]);
      plain += here;
    }
    gamma[i] += static_cast<double>(weighted);
    if constexpr (kCentred) beta[i] += static_cast<double>(plain);
  }
}

// gamma and beta [n] += the sums over up to kRows rows.
template <bool kCentred, class T>
void add_parameters(const Gradient<kCentred, T>& o, std::int64_t first, std::int64_t last, double* gamma, double* beta) {
  if constexpr (std::is_same_v<T, float>) {
    rows::NormRow norms[kRows];
    for (std::int64_t row = first; row < last; ++row) norms[row - first] = {o.mean_of(row), o.inv_std[row]};
    kernels_of<kCentred>().parameters(o.x + first * o.n, o.g + first * o.n, norms, last - first, o.n, gamma, beta);
  } else if (last - first == kRows) {
    add_rows<kRows>(o, first, gamma, beta);
  } else {
    for (std::int64_t row = first; row < last; ++row) add_rows<1>(o, row, gamma, beta);
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

// One walk over memory for all gradients: a few rows stay in cache between theirs. `grad_x`, or grad_gamma and grad_beta, may be
// null.
template <bool kCentred, class T, class C = Compute<T>>
void backward(const Gradient<kCentred, T>& o, std::int64_t rows, T* grad_x, C* grad_gamma, C* grad_beta) {
  const auto width = static_cast<std::size_t>(o.n);
  std::vector<double> gammas(grad_gamma != nullptr ? static_cast<std::size_t>(row_parts(rows, o.n)) * width : 0);
  std::vector<double> betas(kCentred ? gammas.size() : 0);
  const rows::Stores stores = rows::stores_for(rows * o.n * static_cast<std::int64_t>(sizeof(T)));
  parallel_rows(rows, o.n, [&](std::int64_t begin, std::int64_t end, int part) {
    const auto at = static_cast<std::size_t>(part) * width;
    double* const gamma = gammas.empty() ? nullptr : gammas.data() + at;
    double* const beta = betas.empty() ? nullptr : betas.data() + at;
    for (std::int64_t first = begin; first < end; first += kRows) {
      const std::int64_t last = std::min(first + kRows, end);
      for (std::int64_t row = first; grad_x != nullptr && row < last; ++row) input_row(o, row, stores, grad_x + row * o.n);
      if (gamma != nullptr) add_parameters(o, first, last, gamma, beta);
    }
  });
  if (grad_gamma == nullptr) return;
  join(gammas, o.n, grad_gamma);
  if constexpr (kCentred) join(betas, o.n, grad_beta);
}

}  // namespace

void layer_norm_forward(const Tensor& x, const Tensor& gamma, const Tensor& beta, double eps, const Tensor& y, const Tensor& mean,
                        const Tensor& inv_std) {
  dispatch_floating(x.dtype(), "layer_norm", [&]<class T>() {
    using C = Compute<T>;
    if (!mean.defined()) {
      return forward<false, T, C>(x, gamma.data<C>(), nullptr, eps, y.data<T>(), nullptr, inv_std.data<C>());
    }
    forward<true>(x, gamma.data<C>(), beta.data<C>(), eps, y.data<T>(), mean.data<C>(), inv_std.data<C>());
  });
}

void layer_norm_backward(const Tensor& x, const Tensor& grad_y, const Tensor& gamma, const Tensor& mean, const Tensor& inv_std,
                         const Tensor& grad_x, const Tensor& grad_gamma, const Tensor& grad_beta) {
  dispatch_floating(x.dtype(), "layer_norm", [&]<class T>() {
    using C = Compute<T>;
    const auto run = [&]<bool kCentred>(const C* means) {
      const Gradient<kCentred, T> o{x.data<T>(), grad_y.data<T>(), gamma.data<C>(), means, inv_std.data<C>(), x.dim(1)};
      backward(o, x.dim(0), static_cast<T*>(grad_x.raw()), static_cast<C*>(grad_gamma.raw()), static_cast<C*>(grad_beta.raw()));
    };
    mean.defined() ? run.template operator()<true>(mean.data<C>()) : run.template operator()<false>(nullptr);
  });
}

}  // namespace tessera::cpu
