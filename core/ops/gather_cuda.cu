#include <limits>

#include "core/cuda/kernel/compute_types.cuh"
#include "core/cuda/kernel/elements.cuh"
#include "core/cuda/kernel/launch.cuh"
#include "core/cuda/kernel/ordered_sum.h"
#include "core/ops/gather.h"
#include "core/strided_loop.h"

namespace tessera::cuda {
namespace {

// The part of x that index can address, with stride 0 along the axis. Adding index * stride to an offset gives the element.
Tensor origin(const Tensor& x, int axis, const Shape& index) {
  Tensor view = x;
  for (int i = 0; i < x.rank(); ++i) view = view.slice(i, 0, i == axis ? 1 : index[i]);
  return view.expand(index);
}

template <std::size_t N>
__device__ std::array<std::int64_t, N> offsets_of(const StridedLoop<N>& loop, std::int64_t element) {
  const std::int64_t row = element / loop.inner();
  auto at = loop.offsets(row);
  for (std::size_t k = 0; k < N; ++k) at[k] += (element - row * loop.inner()) * loop.inner_stride(k);
  return at;
}

struct Axis {
  std::int64_t size;
  std::int64_t stride;
};

// The loop's operands are y, index and the origin of x. A wrong index gives NaN.
template <class T>
__global__ void gather_forward_kernel(const __grid_constant__ StridedLoop<3> loop, std::int64_t count, Axis axis,
                                      const std::int64_t* index, const T* x, T* y) {
  for (std::int64_t i = first_item(); i < count; i += item_stride()) {
    const auto at = offsets_of(loop, i);
    const std::int64_t pick = index[at[1]];
    const bool inside = pick >= 0 && pick < axis.size;
    y[at[0]] = inside ? x[at[2] + pick * axis.stride] : element_of<T>(std::numeric_limits<Compute<T>>::quiet_NaN());
  }
}

// The loop's operands are grad_y, index and the origin of grad_x. targets[i] is the element of grad_x that takes gradient i
// (-1: none), and terms[i] is that gradient.
template <class T>
__global__ void gather_targets_kernel(const __grid_constant__ StridedLoop<3> loop, std::int64_t count, Axis axis,
                                      const std::int64_t* index, const T* grad_y, std::int64_t* targets, T* terms) {
  for (std::int64_t i = first_item(); i < count; i += item_stride()) {
    const auto at = offsets_of(loop, i);
    const std::int64_t pick = index[at[1]];
    targets[i] = pick >= 0 && pick < axis.size ? at[2] + pick * axis.stride : -1;
    terms[i] = grad_y[at[0]];
  }
}

}  // namespace

void gather_forward(const Tensor& x, int axis, const Tensor& index, const Tensor& y) {
  const std::int64_t count = index.numel();
  if (count == 0) return;
  const Axis along{x.shape()[axis], x.strides()[axis]};
  TESSERA_CHECK(along.size > 0, ShapeError, "gather: axis ", axis, " of x is empty: x is ", x.shape(), ", index is ",
                index.shape());
  const Tensor from = origin(x, axis, index.shape());
  const auto loop = make_strided_loop<3>({&y, &index, &from});
  dispatch_numbers(x.dtype(), "gather", [&]<class T>() {
    launch("gather", x.device(), grid_for(count, x.device()), gather_forward_kernel<T>, loop, count, along,
           index.data<std::int64_t>(), x.data<T>(), y.data<T>());
  });
}

void gather_backward(const Tensor& grad_y, int axis, const Tensor& index, const Tensor& grad_x) {
  const std::int64_t count = index.numel();
  if (count == 0) return grad_x.fill(0.0);
  const Device device = grad_x.device();
  const Axis along{grad_x.shape()[axis], grad_x.strides()[axis]};
  const Tensor to = origin(grad_x, axis, index.shape());
  const auto loop = make_strided_loop<3>({&grad_y, &index, &to});
  const Tensor targets = Tensor::empty({count}, DType::i64, device);
  const Tensor terms = Tensor::empty({count, 1}, grad_y.dtype(), device);
  dispatch_numbers(grad_x.dtype(), "gather_backward", [&]<class T>() {
    launch("gather_backward", device, grid_for(count, device), gather_targets_kernel<T>, loop, count, along,
           index.data<std::int64_t>(), grad_y.data<T>(), targets.data<std::int64_t>(), terms.data<T>());
  });
  ordered_row_sums("gather_backward", targets, terms, grad_x.reshape({grad_x.numel(), 1}));
}

}  // namespace tessera::cuda
