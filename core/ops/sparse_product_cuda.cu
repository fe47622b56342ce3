#include "core/cuda/kernel/elements.cuh"
#include "core/cuda/kernel/launch.cuh"
#include "core/ops/sparse_by_dense.h"

namespace tessera::cuda {
namespace {

template <class T>
__global__ void scatter_kernel(std::int64_t count, const T* values, const std::int64_t* positions, T* dense) {
  for (std::int64_t i = first_item(); i < count; i += item_stride()) dense[positions[i]] = values[i];
}

template <class T>
__global__ void gather_kernel(std::int64_t count, const T* dense, const std::int64_t* positions, T* values) {
  for (std::int64_t i = first_item(); i < count; i += item_stride()) values[i] = dense[positions[i]];
}

}  // namespace

void sparse_forward(const Tensor& x, const Tensor& values, const SparseWeight& weight, const Tensor& bias, const Tensor& y,
                    const Conv2dOptions& options, bool relu) {
  sparse_forward_by_dense(x, values, weight, bias, y, options, relu);
}

void sparse_backward_input(const Tensor& grad_y, const Tensor& values, const SparseWeight& weight, const Tensor& grad_x,
                           const Conv2dOptions& options) {
  sparse_backward_input_by_dense(grad_y, values, weight, grad_x, options);
}

void sparse_backward_values(const Tensor& x, const Tensor& grad_y, const SparseWeight& weight, const Tensor& grad_values,
                            const Tensor& grad_bias, const Conv2dOptions& options) {
  sparse_backward_values_by_dense(x, grad_y, weight, grad_values, grad_bias, options);
}

void scatter_values(const Tensor& values, const Tensor& positions, const Tensor& dense) {
  dense.fill(0);
  const std::int64_t count = values.numel();
  if (count == 0) return;
  dispatch_real(values.dtype(), "scatter_values", [&]<class T>() {
    launch("scatter_values", values.device(), grid_for(count, values.device()), scatter_kernel<T>, count, values.data<T>(),
           positions.data<std::int64_t>(), dense.data<T>());
  });
}

void gather_values(const Tensor& dense, const Tensor& positions, const Tensor& values) {
  const std::int64_t count = values.numel();
  if (count == 0) return;
  dispatch_real(values.dtype(), "gather_values", [&]<class T>() {
    launch("gather_values", values.device(), grid_for(count, values.device()), gather_kernel<T>, count, dense.data<T>(),
           positions.data<std::int64_t>(), values.data<T>());
  });
}

}  // namespace tessera::cuda
