#include "core/cuda/kernel/compute_types.cuh"
#include "core/cuda/kernel/softmax_row.cuh"
#include "core/ops/softmax.h"

namespace tessera::cuda {
namespace {

template <bool kLog>
void forward(const char* operation, const Tensor& x, const Tensor& y) {
  if (x.numel() == 0) return;
  dispatch_numbers(x.dtype(), operation, [&]<class T>() {
    const SoftmaxForward<T, kLog> op{x.data<T>(), y.data<T>()};
    launch_rows<T>(operation, x.device(), x.numel() / x.dim(-1), x.dim(-1), all_aligned(x, y), op);
  });
}

template <bool kLog>
void backward(const char* operation, const Tensor& y, const Tensor& grad_y, const Tensor& grad_x) {
  if (y.numel() == 0) return;
  const Tensor g = grad_y.contiguous();
  dispatch_numbers(y.dtype(), operation, [&]<class T>() {
    const SoftmaxBackward<T, kLog> op{y.data<T>(), g.data<T>(), grad_x.data<T>()};
    launch_rows<T>(operation, y.device(), y.numel() / y.dim(-1), y.dim(-1), all_aligned(y, g, grad_x), op);
  });
}

}  // namespace

void softmax_forward(const Tensor& x, const Tensor& y) { forward<false>("softmax", x, y); }
void softmax_backward(const Tensor& y, const Tensor& grad_y, const Tensor& grad_x) {
  backward<false>("softmax_backward", y, grad_y, grad_x);
}
void log_softmax_forward(const Tensor& x, const Tensor& y) { forward<true>("log_softmax", x, y); }
void log_softmax_backward(const Tensor& y, const Tensor& grad_y, const Tensor& grad_x) {
  backward<true>("log_softmax_backward", y, grad_y, grad_x);
}

}  // namespace tessera::cuda
