#include "core/cuda/kernel/map.cuh"
#include "core/ops/where.h"

namespace tessera::cuda {
namespace {

struct Choose {
  template <class T>
  __device__ T operator()(std::uint8_t mask, T a, T b) const { return mask != 0 ? a : b; }
};

struct Keep {
  bool inverted;
  template <class T>
  __device__ T operator()(std::uint8_t mask, T g) const { return (mask != 0) != inverted ? g : T(0); }
};

}  // namespace

void where_forward(const Tensor& mask, const Tensor& a, const Tensor& b, const Tensor& y) {
  dispatch_numbers(y.dtype(), "where", [&]<class T>() {
    map_as(MapTypes<T, std::uint8_t, T, T>(), "where", Choose{}, y, mask, a, b);
  });
}

void where_backward(const Tensor& mask, const Tensor& grad_y, bool inverted, const Tensor& grad) {
  dispatch_numbers(grad.dtype(), "where_backward", [&]<class T>() {
    map_as(MapTypes<T, std::uint8_t, T>(), "where_backward", Keep{inverted}, grad, mask, grad_y);
  });
}

}  // namespace tessera::cuda
