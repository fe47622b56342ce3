#include "core/cuda/kernel/elements.cuh"
#include "core/cuda/kernel/launch.cuh"
#include "core/ops/sparse_product.h"

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
