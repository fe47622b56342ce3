#include "core/ops/sparse_by_dense.h"

#include "core/device/constant_weights.h"
#include "core/device/dispatch.h"
#include "core/ops/conv2d.h"
#include "core/ops/linear.h"

namespace tessera {
namespace {

bool is_linear(const SparseWeight& weight) { return weight.shape().rank() == 2; }

// The composed weight. Constant weights are composed once.
Tensor dense_weight(const Tensor& values, const SparseWeight& weight) {
  static const auto user = std::make_shared<const char>();
  ConstantWeights* const constant = ConstantWeights::current();
  if (constant == nullptr) return composed_weight(values, weight);
  return constant->derived(user, values, [&] { return composed_weight(values, weight); });
}

}  // namespace

Tensor composed_weight(const Tensor& values, const SparseWeight& weight) {
  Tensor dense = Tensor::empty(weight.shape(), values.dtype(), values.device());
  TESSERA_BACKEND(values.device(), scatter_values, values.contiguous(), weight.positions(values.device()), dense);
  return dense;
}

void sparse_forward_by_dense(const Tensor& x, const Tensor& values, const SparseWeight& weight, const Tensor& bias,
                             const Tensor& y, const Conv2dOptions& options, bool relu) {
  const Tensor dense = dense_weight(values, weight);
  if (is_linear(weight)) {
    TESSERA_BACKEND(x.device(), linear_forward, x, dense, bias, y, relu);
  } else if (relu) {
    TESSERA_BACKEND(x.device(), conv2d_relu_forward, x, dense, bias, Tensor(), y, options);
  } else {
    TESSERA_BACKEND(x.device(), conv2d_forward, x, dense, bias, y, options);
  }
}

void sparse_backward_input_by_dense(const Tensor& grad_y, const Tensor& values, const SparseWeight& weight, const Tensor& grad_x,
                                    const Conv2dOptions& options) {
  const Tensor dense = dense_weight(values, weight);
  if (is_linear(weight)) {
    TESSERA_BACKEND(grad_y.device(), linear_backward_input, grad_y, dense, grad_x);
  } else {
    TESSERA_BACKEND(grad_y.device(), conv2d_backward_input, grad_y, dense, grad_x, options);
  }
}

void sparse_backward_values_by_dense(const Tensor& x, const Tensor& grad_y, const SparseWeight& weight, const Tensor& grad_values,
                                     const Tensor& grad_bias, const Conv2dOptions& options) {
  const Tensor dense = Tensor::empty(weight.shape(), grad_values.dtype(), grad_values.device());
  if (is_linear(weight)) {
    TESSERA_BACKEND(x.device(), linear_backward_weight, x, grad_y, dense, grad_bias);
  } else {
    TESSERA_BACKEND(x.device(), conv2d_backward_weight, x, grad_y, dense, grad_bias, options);
  }
  TESSERA_BACKEND(x.device(), gather_values, dense, weight.positions(x.device()), grad_values);
}

}  // namespace tessera
