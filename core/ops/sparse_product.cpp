#include "core/ops/sparse_product.h"

#include "core/device/dispatch.h"
#include "core/ops/arithmetic.h"
#include "core/ops/conv2d.h"
#include "core/ops/dense_operands.h"
#include "core/ops/relu.h"

namespace tessera {
namespace {

// In a linear map, the operands are viewed as rows.
class SparseOp final : public Op {
 public:
  SparseOp(Tensor x, Tensor values, SparseWeightPtr weight, bool bias, const Conv2dOptions& options)
      : x_(std::move(x)), values_(std::move(values)), weight_(std::move(weight)), bias_(bias), options_(options) {}
  std::string_view name() const override { return is_linear() ? "sparse_linear" : "sparse_conv2d"; }

  Grads backward(const Tensor& grad_y, NeedsGrad needs) override {
    const bool bias_needed = bias_ && needs[2];
    const Tensor g = is_linear() ? as_rows(grad_y) : grad_y;
    Grads grads(bias_ ? 3 : 2);
    if (needs[0]) {
      grads[0] = Tensor::empty_like(x_);
      TESSERA_DISPATCH(g.device(), sparse_backward_input, g, values_, *weight_, is_linear() ? as_rows(grads[0]) : grads[0],
                       options_);
    }
    if (needs[1] || bias_needed) {
      grads[1] = Tensor::empty_like(values_);
      const Tensor grad_bias = bias_needed ? Tensor::empty({weight_->shape()[0]}, values_.dtype(), values_.device()) : Tensor();
      TESSERA_DISPATCH(g.device(), sparse_backward_values, is_linear() ? as_rows(x_) : x_, g, *weight_, grads[1], grad_bias,
                       options_);
      if (bias_needed) grads[2] = grad_bias;
    }
    return grads;
  }

  std::int64_t multiply_adds(const Shape& y) const override { return y.numel() / weight_->shape()[0] * weight_->count(); }

 private:
  bool is_linear() const { return weight_->shape().rank() == 2; }

  Tensor x_;
  Tensor values_;
  SparseWeightPtr weight_;
  bool bias_;
  Conv2dOptions options_;
};

// A convolution with its ReLU, used if !grad_enabled() and without a residual. Profiles and numeric checks know it by its name.
class SparseConv2dReluOp final : public Op {
 public:
  explicit SparseConv2dReluOp(SparseWeightPtr weight) : weight_(std::move(weight)) {}
  std::string_view name() const override { return "sparse_conv2d_relu"; }
  Grads backward(const Tensor&, NeedsGrad) override {
    throw InternalError("sparse_conv2d_relu: three ops are recorded in its place");
  }
  std::int64_t multiply_adds(const Shape& y) const override { return y.numel() / weight_->shape()[0] * weight_->count(); }

 private:
  SparseWeightPtr weight_;
};

void check_values(const char* operation, const Var& x, const Var& values, const SparseWeight& weight, const Var& bias) {
  TESSERA_CHECK(values.shape() == Shape{weight.count()}, ShapeError, operation, ": values do not fit: they are ", values.shape(),
                ", the weight keeps ", weight.count(), " elements of ", weight.shape());
  check_parameters(operation, {"x", x.value()}, {{"values", values.value()}});
  if (!bias.defined()) return;
  TESSERA_CHECK(bias.shape() == Shape{weight.shape()[0]}, ShapeError, operation, ": bias does not fit: weight is ",
                weight.shape(), ", bias is ", bias.shape(), "; bias must be [weight.dim(0)]");
  check_parameters(operation, {"x", x.value()}, {{"bias", bias.value()}});
}

Shape conv2d_shape(const char* operation, const Var& x, const Var& values, const SparseWeight& weight, const Var& bias,
                   const Conv2dOptions& options) {
  check_values(operation, x, values, weight, bias);
  TESSERA_CHECK(weight.shape().rank() == 4 && options.groups == 1, ShapeError, operation, ": weight is ", weight.shape(),
                ", groups ", options.groups, "; needs [out, kh, kw, in] and 1");
  return conv2d_output_shape(x.shape(), weight.shape(), options);
}

Tensor contiguous_or_none(const Var& x) { return x.defined() ? x.value().contiguous() : Tensor(); }

Var recorded(const Var& x, const Var& values, const SparseWeightPtr& weight, const Var& bias, const Conv2dOptions& options,
             Tensor y) {
  auto op = std::make_unique<SparseOp>(x.value().contiguous(), values.value().contiguous(), weight, bias.defined(), options);
  if (!bias.defined()) return record(std::move(op), {x, values}, std::move(y));
  return record(std::move(op), {x, values, bias}, std::move(y));
}

}  // namespace

Var sparse_linear(const Var& x, const Var& values, const SparseWeightPtr& weight, const Var& bias) {
  const Shape& shape = weight->shape();
  TESSERA_CHECK(shape.rank() == 2 && x.shape().rank() >= 1 && x.shape()[x.shape().rank() - 1] == shape[1], ShapeError,
                "sparse_linear: input features differ: x is ", x.shape(), ", weight is ", shape,
                "; x.dim(-1) must equal weight.dim(1)");
  check_values("sparse_linear", x, values, *weight, bias);
  const Tensor input = x.value().contiguous();
  Tensor y = Tensor::empty(input.shape().erase(input.rank() - 1).append(shape[0]), input.dtype(), input.device());
  TESSERA_DISPATCH(y.device(), sparse_forward, as_rows(input), values.value().contiguous(), *weight, contiguous_or_none(bias),
                   as_rows(y), Conv2dOptions(), false);
  return recorded(x, values, weight, bias, {}, std::move(y));
}

Var sparse_conv2d(const Var& x, const Var& values, const SparseWeightPtr& weight, const Var& bias, const Conv2dOptions& options) {
  Tensor y = Tensor::empty(conv2d_shape("sparse_conv2d", x, values, *weight, bias, options), x.dtype(), x.device());
  TESSERA_DISPATCH(y.device(), sparse_forward, x.value().contiguous(), values.value().contiguous(), *weight,
                   contiguous_or_none(bias), y, options, false);
  return recorded(x, values, weight, bias, options, std::move(y));
}

Var sparse_conv2d_relu(const Var& x, const Var& values, const SparseWeightPtr& weight, const Var& bias, const Var& residual,
                       const Conv2dOptions& options) {
  if (grad_enabled() || residual.defined()) {
    const Var y = sparse_conv2d(x, values, weight, bias, options);
    return relu(residual.defined() ? add(y, residual) : y);
  }
  Tensor y = Tensor::empty(conv2d_shape("sparse_conv2d_relu", x, values, *weight, bias, options), x.dtype(), x.device());
  TESSERA_DISPATCH(y.device(), sparse_forward, x.value().contiguous(), values.value().contiguous(), *weight,
                   contiguous_or_none(bias), y, options, true);
  std::vector<Var> inputs{x, values};
  if (bias.defined()) inputs.push_back(bias);
  return record(std::make_unique<SparseConv2dReluOp>(weight), inputs, std::move(y));
}

}  // namespace tessera
