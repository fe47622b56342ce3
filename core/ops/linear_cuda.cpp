#include "core/cuda/libraries/blas.h"
#include "core/cuda/libraries/product_weights.h"
#include "core/ops/linear.h"

namespace tessera::cuda {
namespace {

Tensor batch_of_one(const Tensor& x) { return x.reshape({1, x.dim(0), x.dim(1)}); }

}  // namespace

// The bias is rounded to y's dtype: the library adds no bias of another dtype to a half product, which is still in f32 registers.
void linear_forward(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& y, bool relu) {
  if (y.numel() == 0) return;
  const Tensor factor = batch_of_one(rounded_weight(weight, x.dtype()));
  const Tensor addend = bias.defined() ? rounded_weight(bias, y.dtype()) : Tensor();
  multiply({batch_of_one(x), factor, batch_of_one(y), false, true, addend, relu}, "linear");
}

void linear_backward_input(const Tensor& grad_y, const Tensor& weight, const Tensor& grad_x) {
  if (grad_x.numel() == 0) return;
  multiply({batch_of_one(grad_y), batch_of_one(rounded_weight(weight, grad_y.dtype())), batch_of_one(grad_x)}, "linear");
}

// Half gradients are multiplied as they are, and added up in f32, the dtype of grad_weight.
void linear_backward_weight(const Tensor& x, const Tensor& grad_y, const Tensor& grad_weight, const Tensor& grad_bias) {
  multiply({batch_of_one(grad_y), batch_of_one(x), batch_of_one(grad_weight), true, false, {}, false, grad_bias}, "linear");
}

}  // namespace tessera::cuda
