#include "core/cuda/kernel/map.cuh"
#include "core/cuda/kernel/reduce.cuh"
#include "core/ops/mse.h"

namespace tessera::cuda {
namespace {

template <class T>
struct SquaredDistance {
  const T* x;
  const T* target;
  __device__ double operator()(std::int64_t i) const {
    const double d = static_cast<double>(x[i]) - static_cast<double>(target[i]);
    return d * d;
  }
};

template <class T>
struct StoreMean {
  double count;
  T* y;
  __device__ void operator()(double total) const { *y = static_cast<T>(total / count); }
};

// grad_y, the gradient of the result, is read on the device.
template <class T>
struct ScaledDifference {
  double scale;
  const T* grad_y;
  __device__ T operator()(T a, T b) const { return static_cast<T>(scale * static_cast<double>(*grad_y)) * (a - b); }
};

}  // namespace

void mse_forward(const Tensor& x, const Tensor& target, const Tensor& y) {
  const Tensor a = x.contiguous();
  const Tensor b = target.contiguous();
  dispatch_real(a.dtype(), "mse", [&]<class T>() {
    reduce_items("mse", a.device(), a.numel(), 0.0, SquaredDistance<T>{a.data<T>(), b.data<T>()}, Plus(),
                 StoreMean<T>{static_cast<double>(a.numel()), y.data<T>()});
  });
}

void mse_backward(const Tensor& x, const Tensor& target, const Tensor& grad_y, double scale, const Tensor& grad) {
  dispatch_real(x.dtype(), "mse_backward", [&]<class T>() {
    map_as(MapTypes<T, T, T>(), "mse_backward", ScaledDifference<T>{scale, grad_y.data<T>()}, grad, x, target);
  });
}

}  // namespace tessera::cuda
