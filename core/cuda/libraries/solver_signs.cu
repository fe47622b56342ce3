#include "core/cuda/libraries/solver_signs.h"

#include "core/cuda/kernel/launch.cuh"

namespace tessera::cuda {
namespace {

__global__ void column_signs_kernel(std::int64_t batch, std::int64_t m, std::int64_t k, const double* u, double* signs) {
  for (std::int64_t i = first_item(); i < batch * k; i += item_stride()) {
    const double* const column = u + i / k * m * k + i % k;
    double largest = 0;
    for (std::int64_t row = 0; row < m; ++row) {
      const double entry = column[row * k];
      if (fabs(entry) > fabs(largest)) largest = entry;
    }
    signs[i] = largest < 0 ? -1.0 : 1.0;
  }
}

__global__ void diagonal_signs_kernel(std::int64_t k, std::int64_t n, const double* r, double* signs) {
  for (std::int64_t i = first_item(); i < k; i += item_stride()) signs[i] = r[i * n + i] < 0 ? -1.0 : 1.0;
}

__global__ void upper_triangle_kernel(std::int64_t k, std::int64_t n, std::int64_t m, const double* columns, double* r) {
  for (std::int64_t i = first_item(); i < k * n; i += item_stride()) {
    const std::int64_t row = i / n;
    const std::int64_t column = i % n;
    r[i] = column >= row ? columns[column * m + row] : 0.0;
  }
}

__global__ void reversed_rows_kernel(std::int64_t count, std::int64_t n, std::int64_t m, const double* x, double* y) {
  for (std::int64_t i = first_item(); i < count; i += item_stride()) {
    const std::int64_t row = i / m % n;
    const std::int64_t matrix = i / (m * n);
    y[i] = x[(matrix * n + n - 1 - row) * m + i % m];
  }
}

}  // namespace

Tensor column_signs(const Tensor& u) {
  const std::int64_t m = u.dim(-2);
  const std::int64_t k = u.dim(-1);
  const Tensor signs = Tensor::empty(u.shape().erase(u.rank() - 2), DType::f64, u.device());
  launch("column_signs", u.device(), grid_for(signs.numel(), u.device(), 64), column_signs_kernel,
         signs.numel() / (k > 0 ? k : 1), m, k, u.data<double>(), signs.data<double>());
  return signs;
}

Tensor diagonal_signs(const Tensor& r) {
  const Tensor signs = Tensor::empty({r.dim(0)}, DType::f64, r.device());
  launch("diagonal_signs", r.device(), grid_for(r.dim(0), r.device()), diagonal_signs_kernel, r.dim(0), r.dim(1),
         r.data<double>(), signs.data<double>());
  return signs;
}

Tensor upper_triangle(const Tensor& columns, std::int64_t k) {
  const std::int64_t n = columns.dim(0);
  const Tensor r = Tensor::empty({k, n}, DType::f64, columns.device());
  launch("upper_triangle", r.device(), grid_for(r.numel(), r.device()), upper_triangle_kernel, k, n, columns.dim(1),
         columns.data<double>(), r.data<double>());
  return r;
}

Tensor reversed_rows(const Tensor& x) {
  const Tensor y = Tensor::empty_like(x);
  launch("reversed_rows", x.device(), grid_for(x.numel(), x.device()), reversed_rows_kernel, x.numel(), x.dim(-2), x.dim(-1),
         x.data<double>(), y.data<double>());
  return y;
}

}  // namespace tessera::cuda
