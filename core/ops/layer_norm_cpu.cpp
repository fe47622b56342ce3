#include <algorithm>
#include <cmath>

#include "core/compute_type.h"
#include "core/cpu/parallel.h"
#include "core/cpu/rows/problem.h"
#include "core/ops/layer_norm.h"
#include "core/support/rounding.h"
#include "core/tensor.h"

namespace tessera::cpu {
namespace {

template <bool kCentred, class T>
const rows::NormKernels<T>& kernels_of() {
  return kCentred ? rows::kernels().of<T>().layer_norm : rows::kernels().of<T>().rms_norm;
}

template <class C>
struct Statistics {
  C mean, inv_std;
};

// One row of layer norm, or of RMS norm without kCentred: RMS norm has no beta, and its mean is 0.
template <bool kCentred, class T, class C = Compute<T>>
Statistics<C> forward_row(const T* x, const C* gamma, [[maybe_unused]] const C* beta, std::int64_t n, double eps,
                          rows::Stores stores, T* y) {
  if constexpr (!std::is_same_v<T, double>) {
    const rows::NormRow norm = kernels_of<kCentred, T>().forward(x, gamma, beta, n, eps, stores, y);
    return {norm.mean, norm.inv_std};
  } else {
    const C share = C(1) / static_cast<C>(n);
    C mean = 0;
    if constexpr (kCentred) {
      C sum = 0;
#pragma omp simd reduction(+ : sum)
      for (std::int64_t i = 0; i < n; ++i) sum += x[i];
      mean = sum * share;
    }
    C squares = 0;
#pragma omp simd reduction(+ : squares)
    for (std::int64_t i = 0; i < n; ++i) squares += (x[i] - mean) * (x[i] - mean);
    const C scale = static_cast<C>(1.0 / std::sqrt(static_cast<double>(squares * share) + eps));
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) {
      C result = (x[i] - mean) * scale * gamma[i];
      if constexpr (kCentred) result += beta[i];
      y[i] = result;
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

// Operands of a backward pass. mean and inv_std have one number per row.
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

template <bool kCentred>
void input_row(const Gradient<kCentred, double>& o, std::int64_t row, double* to) {
  const double* const from = o.x + row * o.n;
  const double* const g = o.g + row * o.n;
  const double* const gamma = o.gamma;
  const double mean = o.mean_of(row), scale = o.inv_std[row], share = 1.0 / static_cast<double>(o.n);
  double plain = 0;
  double weighted = 0;
#pragma omp simd reduction(+ : plain, weighted)
  for (std::int64_t i = 0; i < o.n; ++i) {
    const double a = g[i] * gamma[i];
    if constexpr (kCentred) plain += a;
    weighted += a * (from[i] - mean);
  }
  const double offset = kCentred ? plain * share : 0;
  const double slope = weighted * scale * scale * share;
#pragma omp simd
  for (std::int64_t i = 0; i < o.n; ++i) {
    to[i] = scale * (g[i] * gamma[i] - offset - (from[i] - mean) * slope);
  }
}

template <bool kCentred>
void add_parameters(const Gradient<kCentred, double>& o, std::int64_t row, double* gamma, [[maybe_unused]] double* beta) {
  for (std::int64_t i = 0; i < o.n; ++i) {
    const double here = o.g[row * o.n + i];
    gamma[i] += here * (o.x[row * o.n + i] - o.mean_of(row)) * o.inv_std[row];
    if constexpr (kCentred) beta[i] += here;
  }
}

// Rows of one call. Beside the gradient of x their sums are taken in f32 before the doubles of a column are updated.
constexpr std::int64_t kRows = 16;

// Rows [first, last), kRows at most. Writes grad_x, which begins at row `first`, and adds to gamma and beta [n]; null: not
// wanted.
template <bool kCentred, class T>
void backward_rows(const Gradient<kCentred, T>& o, std::int64_t first, std::int64_t last, rows::Stores stores, T* grad_x,
                   [[maybe_unused]] float* scratch, double* gamma, double* beta) {
  if constexpr (std::is_same_v<T, double>) {
    for (std::int64_t row = first; row < last; ++row) {
      if (grad_x != nullptr) input_row(o, row, grad_x + (row - first) * o.n);
      if (gamma != nullptr) add_parameters(o, row, gamma, beta);
    }
  } else {
    const rows::NormKernels<T>& kernels = kernels_of<kCentred, T>();
    rows::NormRow norms[kRows];
    for (std::int64_t row = first; row < last; ++row) norms[row - first] = {o.mean_of(row), o.inv_std[row]};
    const T* const x = o.x + first * o.n;
    const T* const g = o.g + first * o.n;
    const std::int64_t count = last - first;
    if (grad_x == nullptr) return kernels.parameters(x, g, norms, count, o.n, gamma, beta);
    kernels.backward(x, g, o.gamma, norms, count, o.n, stores, grad_x, scratch, gamma, beta);
  }
}

// Floats of a page. A core fetches ahead to the end of a page, and would take the lines that another thread writes there.
constexpr std::int64_t kApart = 1024;

// The sums of parameters are taken over blocks of rows and joined in order, so the number of threads does not change a bit.
constexpr std::int64_t kMostBlocks = 32, kLeastBlock = 32;

std::int64_t block_of(std::int64_t rows) {
  const std::int64_t even = ceil_div(rows, kMostBlocks);
  return std::max(kLeastBlock, round_up(even, kRows));
}

// Adds up sums [blocks][n] in the first block, and converts the result to `to` [n].
template <class C>
void join(double* sums, std::int64_t blocks, std::int64_t n, C* to) {
  for (std::int64_t block = 1; block < blocks; ++block) {
    for (std::int64_t i = 0; i < n; ++i) sums[i] += sums[block * n + i];
  }
  for (std::int64_t i = 0; i < n; ++i) to[i] = static_cast<C>(sums[i]);
}

// Reads each row from memory once: the second walk over it finds it in a cache. `grad_x` may be null, or both grad_gamma and
// grad_beta.
template <bool kCentred, class T, class C = Compute<T>>
void backward(const Gradient<kCentred, T>& o, std::int64_t rows, T* grad_x, C* grad_gamma, C* grad_beta) {
  const std::int64_t size = block_of(rows), blocks = std::max<std::int64_t>(ceil_div(rows, size), 1);
  const bool sums = grad_gamma != nullptr;
  const Tensor gammas = Tensor::empty({sums ? blocks : 0, o.n}, DType::f64);
  const Tensor betas = Tensor::empty({sums && kCentred ? blocks : 0, o.n}, DType::f64);
  const rows::Stores stores = rows::stores_for(rows * o.n * static_cast<std::int64_t>(sizeof(T)));
  const auto threads = static_cast<int>(std::min<std::int64_t>(row_parts(rows, o.n), blocks));
  const std::int64_t pitch = rows::norm_scratch(o.n) + kApart;
  const bool summed_beside_x = sums && grad_x != nullptr && !std::is_same_v<T, double>;
  const Tensor scratch = Tensor::empty({summed_beside_x ? threads : 0, pitch}, DType::f32);
  parallel_parts(blocks, threads, [&](std::int64_t begin, std::int64_t end, int part) {
    float* const own = summed_beside_x ? scratch.data<float>() + part * pitch : nullptr;
    for (std::int64_t block = begin; block < end; ++block) {
      double* const gamma = sums ? gammas.data<double>() + block * o.n : nullptr;
      double* const beta = sums && kCentred ? betas.data<double>() + block * o.n : nullptr;
      if (gamma != nullptr) std::fill_n(gamma, o.n, 0.0);
      if (beta != nullptr) std::fill_n(beta, o.n, 0.0);
      const std::int64_t behind = std::min((block + 1) * size, rows);
      for (std::int64_t first = block * size; first < behind; first += kRows) {
        const std::int64_t last = std::min(first + kRows, behind);
        T* const to = grad_x != nullptr ? grad_x + first * o.n : nullptr;
        backward_rows(o, first, last, stores, to, own, gamma, beta);
      }
    }
  });
  if (!sums) return;
  join(gammas.data<double>(), blocks, o.n, grad_gamma);
  if constexpr (kCentred) join(betas.data<double>(), blocks, o.n, grad_beta);
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
