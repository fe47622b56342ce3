#include "core/cuda/kernel/map.cuh"
#include "core/ops/relu.h"
#include "core/ops/relu_math.h"

namespace tessera::cuda {

void relu_forward(const Tensor& x, const Tensor& y) { map("relu", ReluForward{}, y, x); }

void relu_backward(const Tensor& y, const Tensor& grad_y, const Tensor& grad_x) {
  map("relu_backward", ReluBackward{}, grad_x, y, grad_y);
}

}  // namespace tessera::cuda
