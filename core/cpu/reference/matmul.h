// Matrix product as plain loops with double accumulators: the f64 path, and the fallback of the f32 path. Sums of columns: of f64
// alone.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/cpu/parallel.h"

namespace tessera::cpu::reference {

// Element (i, j) of matrix `batch` lies at batch * batch_stride + i * row_stride + j * column_stride.
template <class T>
struct MatrixView {
  T* data;
  std::int64_t batch_stride;
  std::int64_t row_stride;
  std::int64_t column_stride;

  T& at(std::int64_t batch, std::int64_t i, std::int64_t j) const {
    return data[batch * batch_stride + i * row_stride + j * column_stride];
  }
};

struct MatmulSizes {
  std::int64_t batch;
  std::int64_t m;
  std::int64_t n;
  std::int64_t k;
};

// y [batch, m, n] = a [batch, m, k] b [batch, k, n] (+ bias [n]).
template <class T>
void matmul(const MatmulSizes& sizes, MatrixView<const T> a, MatrixView<const T> b, const T* bias, MatrixView<T> y) {
  const std::int64_t rows = sizes.batch * sizes.m;
  const std::int64_t work = std::max<std::int64_t>(1, sizes.n * sizes.k);
  parallel_for(rows, std::max<std::int64_t>(1, kGrain / work), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const std::int64_t batch = row / sizes.m;
      const std::int64_t i = row % sizes.m;
      for (std::int64_t j = 0; j < sizes.n; ++j) {
        double sum = bias ? static_cast<double>(bias[j]) : 0.0;
        for (std::int64_t p = 0; p < sizes.k; ++p)
          sum += static_cast<double>(a.at(batch, i, p)) * static_cast<double>(b.at(batch, p, j));
        y.at(batch, i, j) = static_cast<T>(sum);
      }
    }
  });
}

// totals [columns] = the sums over the rows of x [rows, columns], in the order of the rows.
inline void column_sums(std::int64_t rows, std::int64_t columns, const double* x, double* totals) {
  std::fill_n(totals, columns, 0.0);
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) totals[j] += x[i * columns + j];
  }
}

}  // namespace tessera::cpu::reference
