#include "core/compute_type.h"
#include "core/cpu/in_f32.h"
#include "core/cpu/strided.h"
#include "core/ops/gather.h"
#include "core/support/error.h"

namespace tessera::cpu {
namespace {

// The part of x that index can address, with stride 0 along the axis. Adding index * stride to an offset gives the element.
Tensor origin(const Tensor& x, int axis, const Shape& index) {
  Tensor view = x;
  for (int i = 0; i < x.rank(); ++i) view = view.slice(i, 0, i == axis ? 1 : index[i]);
  return view.expand(index);
}

}  // namespace

void gather_forward(const Tensor& x, int axis, const Tensor& index, const Tensor& y) {
  if (index.numel() == 0) return;
  const std::int64_t size = x.shape()[axis];
  TESSERA_CHECK(size > 0, ShapeError, "gather: axis ", axis, " of x is empty: x is ", x.shape(), ", index is ", index.shape());
  const std::int64_t stride = x.strides()[axis];
  const Tensor from = origin(x, axis, index.shape());
  const auto loop = make_strided_loop<3>({&y, &index, &from});
  dispatch_floating(x.dtype(), "gather", [&]<class T>() {
    for_each_row(loop, [&](const auto& at, std::int64_t length) {
      for (std::int64_t i = 0; i < length; ++i) {
        const std::int64_t pick = index.data<std::int64_t>()[at[1] + i * loop.inner_stride(1)];
        TESSERA_CHECK(pick >= 0 && pick < size, ShapeError, "gather: index ", pick, " is out of range; needs 0 to ", size - 1,
                      ": axis is ", axis, ", x is ", x.shape());
        y.data<T>()[at[0] + i * loop.inner_stride(0)] = x.data<T>()[at[2] + i * loop.inner_stride(2) + pick * stride];
      }
    });
  });
}

// Serial: two indices may address the same element, and the order of additions must not depend on threads.
void gather_backward(const Tensor& grad_y, int axis, const Tensor& index, const Tensor& grad_x) {
  if (grad_x.dtype() == DType::bf16) {  // in f32, since sums have many terms
    return in_f32([&](const Tensor& from, const Tensor& to) { gather_backward(from, axis, index, to); }, grad_x, grad_y);
  }
  grad_x.fill(0.0);
  if (index.numel() == 0) return;
  const std::int64_t stride = grad_x.strides()[axis];
  const Tensor to = origin(grad_x, axis, index.shape());
  const auto loop = make_strided_loop<3>({&grad_y, &index, &to});
  dispatch_real(grad_x.dtype(), "gather_backward", [&]<class T>() {
    const T* const from = grad_y.data<T>();
    const std::int64_t* const picks = index.data<std::int64_t>();
    T* const sums = grad_x.data<T>();
    for (std::int64_t row = 0; row < loop.outer(); ++row) {
      const auto at = loop.offsets(row);
      for (std::int64_t i = 0; i < loop.inner(); ++i) {
        const std::int64_t pick = picks[at[1] + i * loop.inner_stride(1)];
        sums[at[2] + i * loop.inner_stride(2) + pick * stride] += from[at[0] + i * loop.inner_stride(0)];
      }
    }
  });
}

}  // namespace tessera::cpu
