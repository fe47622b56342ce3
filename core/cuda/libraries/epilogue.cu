#include "core/cuda/libraries/epilogue.h"

#include <algorithm>

#include "core/cuda/kernel/compute_types.cuh"
#include "core/cuda/kernel/launch.cuh"
#include "core/ops/relu_math.h"

namespace tessera::cuda {
namespace {

template <class T, class B>
__global__ void finish_product_kernel(std::int64_t count, std::int64_t n, T* y, const B* bias, const T* residual, bool relu) {
  using C = Compute<T>;
  for (std::int64_t i = first_item(); i < count; i += item_stride()) {
    C value = widen(y[i]);
    if (bias != nullptr) value += static_cast<C>(widen(bias[i % n]));
    if (residual != nullptr) value += widen(residual[i]);
    if (relu) value = ReluForward{}(value);
    y[i] = narrow<T>(value);
  }
}

constexpr unsigned kColumns = 32;  // columns of a block: a warp reads them in one row
constexpr unsigned kRows = 8;

// Block (c, part) sums the rows of its part. Each of its kRows rows of threads takes every kRows-th row.
template <class T, class S>
__global__ void column_sums_kernel(std::int64_t rows, std::int64_t n, std::int64_t rows_of_part, const T* x, S* sums) {
  __shared__ double partial[kRows][kColumns];
  const std::int64_t column = std::int64_t{blockIdx.x} * kColumns + threadIdx.x;
  const std::int64_t begin = std::int64_t{blockIdx.y} * rows_of_part;
  const std::int64_t end = begin + rows_of_part < rows ? begin + rows_of_part : rows;
  double sum = 0;
  if (column < n) {
    for (std::int64_t row = begin + threadIdx.y; row < end; row += kRows) sum += static_cast<double>(widen(x[row * n + column]));
  }
  partial[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || column >= n) return;
  for (unsigned row = 1; row < kRows; ++row) sum += partial[row][threadIdx.x];
  sums[std::int64_t{blockIdx.y} * n + column] = narrow<S>(sum);
}

template <class T, class S>
void sum_columns(const Tensor& x, const Tensor& sums, std::int64_t parts) {
  const std::int64_t rows = x.dim(0);
  const std::int64_t n = x.dim(1);
  const auto across = static_cast<unsigned>((n + kColumns - 1) / kColumns);
  const LaunchShape shape{dim3(across, static_cast<unsigned>(parts)), dim3(kColumns, kRows)};
  launch("column_sums", x.device(), shape, column_sums_kernel<T, S>, rows, n, (rows + parts - 1) / parts, x.data<T>(),
         sums.data<S>());
}

template <class T>
void sum_columns_into(const Tensor& x, const Tensor& sums, std::int64_t parts) {
  if (sums.dtype() == x.dtype()) return sum_columns<T, T>(x, sums, parts);
  if (sums.dtype() == DType::f64) return sum_columns<T, double>(x, sums, parts);
  sum_columns<T, float>(x, sums, parts);
}

// Enough parts to keep a GPU busy, each of at least 256 rows. They depend on the sizes only, and so does the order of the sum.
std::int64_t parts_for(std::int64_t rows, std::int64_t n) {
  const std::int64_t across = (n + kColumns - 1) / kColumns;
  return std::clamp<std::int64_t>(std::min(rows / 256, 512 / across), 1, 256);
}

}  // namespace

void finish_product(const Tensor& y, const Tensor& bias, const Tensor& residual, bool relu) {
  if (y.numel() == 0 || (!bias.defined() && !residual.defined() && !relu)) return;
  dispatch_numbers(y.dtype(), "finish_product", [&]<class T>() {
    const T* const addend = residual.defined() ? residual.data<T>() : nullptr;
    const auto run = [&]<class B>(const B* values) {
      launch("finish_product", y.device(), grid_for(y.numel(), y.device()), finish_product_kernel<T, B>, y.numel(), y.dim(-1),
             y.data<T>(), values, addend, relu);
    };
    if (!bias.defined()) return run(static_cast<const float*>(nullptr));
    if (bias.dtype() == y.dtype()) return run(static_cast<const T*>(bias.data<T>()));
    run(static_cast<const float*>(bias.data<float>()));
  });
}

void column_sums(const Tensor& x, const Tensor& sums) {
  if (sums.numel() == 0) return;
  const std::int64_t parts = parts_for(x.dim(0), x.dim(1));
  dispatch_numbers(x.dtype(), "column_sums", [&]<class T>() {
    if (parts == 1) return sum_columns_into<T>(x, sums, 1);
    const Tensor partial = Tensor::empty({parts, x.dim(1)}, DType::f64, x.device());
    sum_columns_into<T>(x, partial, parts);
    dispatch_numbers(sums.dtype(), "column_sums", [&]<class S>() { sum_columns<double, S>(partial, sums, 1); });
  });
}

}  // namespace tessera::cuda
