#include "core/cuda/kernel/map.cuh"
#include "core/ops/gelu.h"
#include "core/ops/gelu_math.h"

namespace tessera::cuda {

void gelu_forward(const Tensor& x, GeluForm form, const Tensor& y) {
  if (form == GeluForm::erf) map("gelu", GeluErfForward{}, y, x);
  else map("gelu", GeluTanhForward{}, y, x);
}

void gelu_backward(const Tensor& x, const Tensor& grad_y, GeluForm form, const Tensor& grad_x) {
  if (form == GeluForm::erf) map("gelu_backward", GeluErfBackward{}, grad_x, x, grad_y);
  else map("gelu_backward", GeluTanhBackward{}, grad_x, x, grad_y);
}

}  // namespace tessera::cuda
