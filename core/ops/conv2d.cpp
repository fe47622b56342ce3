#include "core/ops/conv2d.h"

#include "core/conv2d_geometry.h"
#include "core/device/dispatch.h"
#include "core/ops/arithmetic.h"
#include "core/ops/dense_operands.h"
#include "core/ops/product_weight.h"
#include "core/ops/relu.h"

namespace tessera {
namespace {

class Conv2dOp final : public Op {
 public:
  Conv2dOp(Tensor x, Tensor weight, DType parameter, bool bias, const Conv2dOptions& options)
      : x_(std::move(x)), weight_(std::move(weight)), parameter_(parameter), bias_(bias), options_(options) {}
  std::string_view name() const override { return "conv2d"; }

  Grads backward(const Tensor& grad_y, NeedsGrad needs) override {
    const bool bias_needed = bias_ && needs[2];
    Grads grads(bias_ ? 3 : 2);
    if (needs[0]) {
      grads[0] = Tensor::empty_like(x_);
      TESSERA_DISPATCH(x_.device(), conv2d_backward_input, grad_y, weight_, grads[0], options_);
    }
    if (needs[1] || bias_needed) {
      grads[1] = Tensor::empty(weight_.shape(), parameter_, weight_.device());
      const Tensor grad_bias = bias_needed ? Tensor::empty({weight_.dim(0)}, parameter_, weight_.device()) : Tensor();
      TESSERA_DISPATCH(x_.device(), conv2d_backward_weight, x_, grad_y, grads[1], grad_bias, options_);
      if (bias_needed) grads[2] = grad_bias;
    }
    return grads;
  }

  std::int64_t multiply_adds(const Shape& y) const override { return y.numel() * weight_.shape().erase(0).numel(); }

 private:
  Tensor x_;
  Tensor weight_;  // as the products read it
  DType parameter_;  // dtype of the given weight, and of its gradient
  bool bias_;
  Conv2dOptions options_;
};

// A convolution with its ReLU, used if !grad_enabled(). Profiles and numeric checks know it by its name.
class Conv2dReluOp final : public Op {
 public:
  explicit Conv2dReluOp(std::int64_t taps) : taps_(taps) {}
  std::string_view name() const override { return "conv2d_relu"; }
  Grads backward(const Tensor&, NeedsGrad) override { throw InternalError("conv2d_relu: three ops are recorded in its place"); }
  std::int64_t multiply_adds(const Shape& y) const override { return y.numel() * taps_; }

 private:
  std::int64_t taps_;  // inputs that an output element sums
};

void check_channels(const Shape& x, const Shape& weight, std::int64_t groups) {
  TESSERA_CHECK(x.rank() == 4 && weight.rank() == 4, ShapeError, "conv2d: wrong rank: x is ", x, ", weight is ", weight,
                "; x must be [n, h, w, in], weight [out, kh, kw, in/groups]");
  TESSERA_CHECK(groups >= 1 && weight[0] % groups == 0, ShapeError, "conv2d: illegal groups: weight is ", weight, ", groups ",
                groups, "; groups must be at least 1 and divide weight.dim(0)=", weight[0]);
  TESSERA_CHECK(x[3] == weight[3] * groups, ShapeError, "conv2d: input channels differ: x is ", x, ", weight is ", weight,
                ", groups ", groups, "; x.dim(-1) must equal weight.dim(-1) * groups");
  TESSERA_CHECK(x[1] >= 1 && x[2] >= 1 && x[3] >= 1 && weight[0] >= 1, ShapeError, "conv2d: nothing to convolve: x is ", x,
                ", weight is ", weight, "; only the batch may be empty");
}

Shape checked_output_shape(const Var& x, const Var& weight, const Var& bias, const Conv2dOptions& options) {
  check_parameters("conv2d", {"x", x.value()}, {{"weight", weight.value()}});
  const Shape shape = conv2d_output_shape(x.shape(), weight.shape(), options);
  if (!bias.defined()) return shape;
  check_parameters("conv2d", {"x", x.value()}, {{"bias", bias.value()}});
  TESSERA_CHECK(bias.shape() == Shape{shape[3]}, ShapeError, "conv2d: bias does not fit: weight is ", weight.shape(),
                ", bias is ", bias.shape(), "; bias must be [weight.dim(0)]");
  return shape;
}

Tensor contiguous_or_none(const Var& x) { return x.defined() ? x.value().contiguous() : Tensor(); }

}  // namespace

Shape conv2d_output_shape(const Shape& x, const Shape& weight, const Conv2dOptions& options) {
  check_channels(x, weight, options.groups);
  const auto [stride, padding, dilation, groups] = options;
  return checked_size("conv2d", {x[0], window_count("conv2d", "height", x[1], weight[1], stride.h, padding.h, dilation.h),
                                 window_count("conv2d", "width", x[2], weight[2], stride.w, padding.w, dilation.w), weight[0]});
}

Var conv2d(const Var& x, const Var& weight, const Var& bias, const Conv2dOptions& options) {
  const Shape shape = checked_output_shape(x, weight, bias, options);
  const Tensor image = x.value().contiguous();
  const Tensor kernel = weight_of_products(weight.value().contiguous(), image.dtype());
  Tensor y = Tensor::empty(shape, x.dtype(), x.device());
  TESSERA_DISPATCH(y.device(), conv2d_forward, image, kernel, contiguous_or_none(bias), y, options);
  auto op = std::make_unique<Conv2dOp>(image, kernel, weight.dtype(), bias.defined(), options);
  if (!bias.defined()) return record(std::move(op), {x, weight}, std::move(y));
  return record(std::move(op), {x, weight, bias}, std::move(y));
}

Var conv2d_relu(const Var& x, const Var& weight, const Var& bias, const Var& residual, const Conv2dOptions& options) {
  const Shape shape = checked_output_shape(x, weight, bias, options);
  if (residual.defined()) {
    check_operands("conv2d_relu", {{"x", x.value()}, {"residual", residual.value()}});
    TESSERA_CHECK(residual.shape() == shape, ShapeError, "conv2d_relu: residual does not fit: it is ", residual.shape(),
                  ", the convolution gives ", shape, "; the shapes must be equal");
  }
  if (grad_enabled()) {
    const Var y = conv2d(x, weight, bias, options);
    return relu(residual.defined() ? add(y, residual) : y);
  }
  Tensor y = Tensor::empty(shape, x.dtype(), x.device());
  TESSERA_DISPATCH(y.device(), conv2d_relu_forward, x.value().contiguous(), weight.value().contiguous(), contiguous_or_none(bias),
                   contiguous_or_none(residual), y, options);
  std::vector<Var> inputs{x, weight};
  for (const Var& optional : {bias, residual}) {
    if (optional.defined()) inputs.push_back(optional);
  }
  return record(std::make_unique<Conv2dReluOp>(weight.shape().erase(0).numel()), inputs, std::move(y));
}

}  // namespace tessera
