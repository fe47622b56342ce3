// Helpers of the linear algebra tests: plain loops in double, independent of the library under test.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/rng.h"
#include "core/tensor.h"

namespace tessera::testing {

inline Tensor random_tensor(const Shape& shape, DType dtype = DType::f64, std::uint64_t seed = 1) {
  const Tensor tensor = Tensor::empty(shape, dtype);
  fill_normal(tensor, RngStream(seed, "linalg", "input"), 0.0, 1.0);
  return tensor;
}

inline std::vector<double> values(const Tensor& tensor) { return tensor.to(DType::f64).contiguous().to_vector<double>(); }

// a [m, k] times b [k, n], optionally with a transposed from [k, m].
inline Tensor naive_matmul(const Tensor& a, const Tensor& b, bool transpose_a = false) {
  const Tensor left = transpose_a ? a.permute({1, 0}) : a;
  const std::vector<double> x = values(left);
  const std::vector<double> y = values(b);
  const std::int64_t m = left.dim(0), k = left.dim(1), n = b.dim(1);
  std::vector<double> product(static_cast<std::size_t>(m * n), 0.0);
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      double& sum = product[static_cast<std::size_t>(i * n + j)];
      for (std::int64_t l = 0; l < k; ++l) sum += x[static_cast<std::size_t>(i * k + l)] * y[static_cast<std::size_t>(l * n + j)];
    }
  }
  return Tensor::from(product, {m, n});
}

inline double largest_difference(const Tensor& a, const Tensor& b) {
  const std::vector<double> x = values(a);
  const std::vector<double> y = values(b);
  if (a.shape() != b.shape()) return std::numeric_limits<double>::infinity();
  double largest = 0;
  for (std::size_t i = 0; i < x.size(); ++i) largest = std::max(largest, std::abs(x[i] - y[i]));
  return largest;
}

inline Tensor identity(std::int64_t n) {
  std::vector<double> entries(static_cast<std::size_t>(n * n), 0.0);
  for (std::int64_t i = 0; i < n; ++i) entries[static_cast<std::size_t>(i * n + i)] = 1.0;
  return Tensor::from(entries, {n, n});
}

// |q'q - I| at its largest.
inline double orthogonality_defect(const Tensor& q) { return largest_difference(naive_matmul(q, q, true), identity(q.dim(1))); }

inline Tensor scale_columns(const Tensor& matrix, const Tensor& scale) {
  std::vector<double> entries = values(matrix);
  const std::vector<double> factors = values(scale);
  for (std::size_t i = 0; i < entries.size(); ++i) entries[i] *= factors[i % factors.size()];
  return Tensor::from(entries, matrix.shape());
}

}  // namespace tessera::testing
