#include "core/compute_type.h"
#include "core/cpu/strided.h"
#include "core/ops/where.h"

namespace tessera::cpu {

void where_forward(const Tensor& mask, const Tensor& a, const Tensor& b, const Tensor& y) {
  const Tensor m = mask.expand(y.shape());
  const Tensor first = a.expand(y.shape());
  const Tensor second = b.expand(y.shape());
  const auto loop = make_strided_loop<4>({&y, &m, &first, &second});
  dispatch_floating(y.dtype(), "where", [&]<class T>() {
    for_each_row(loop, [&](const auto& at, std::int64_t length) {
      T* to = y.data<T>() + at[0];
      const std::uint8_t* take = m.data<std::uint8_t>() + at[1];
      const T* from_a = first.data<T>() + at[2];
      const T* from_b = second.data<T>() + at[3];
      for (std::int64_t i = 0; i < length; ++i) {
        to[i * loop.inner_stride(0)] =
            take[i * loop.inner_stride(1)] != 0 ? from_a[i * loop.inner_stride(2)] : from_b[i * loop.inner_stride(3)];
      }
    });
  });
}

void where_backward(const Tensor& mask, const Tensor& grad_y, bool inverted, const Tensor& grad) {
  const Tensor m = mask.expand(grad.shape());
  const auto loop = make_strided_loop<3>({&grad, &m, &grad_y});
  dispatch_floating(grad.dtype(), "where_backward", [&]<class T>() {
    for_each_row(loop, [&](const auto& at, std::int64_t length) {
      T* to = grad.data<T>() + at[0];
      const std::uint8_t* take = m.data<std::uint8_t>() + at[1];
      const T* from = grad_y.data<T>() + at[2];
      for (std::int64_t i = 0; i < length; ++i) {
        const bool taken = (take[i * loop.inner_stride(1)] != 0) != inverted;
        to[i * loop.inner_stride(0)] = taken ? from[i * loop.inner_stride(2)] : narrow<T>(0.0);
      }
    });
  });
}

}  // namespace tessera::cpu
