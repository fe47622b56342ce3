#include "core/ops/linear.h"

#include "core/device/dispatch.h"
#include "core/ops/dense_operands.h"
#include "core/ops/product_weight.h"

namespace tessera {
namespace {

class LinearOp final : public Op {
 public:
  LinearOp(Tensor x, Tensor weight, DType parameter, bool bias)
      : x_(std::move(x)), weight_(std::move(weight)), parameter_(parameter), bias_(bias) {}
  std::string_view name() const override { return "linear"; }

  Grads backward(const Tensor& grad_y, NeedsGrad needs) override {
    const Tensor g = as_rows(grad_y);
    const bool bias_needed = bias_ && needs[2];
    Grads grads(bias_ ? 3 : 2);
    if (needs[0]) {
      grads[0] = Tensor::empty_like(x_);
      TESSERA_DISPATCH(g.device(), linear_backward_input, g, weight_, as_rows(grads[0]));
    }
    if (needs[1] || bias_needed) {
      grads[1] = Tensor::empty(weight_.shape(), parameter_, weight_.device());
      const Tensor grad_bias = bias_needed ? Tensor::empty({weight_.dim(0)}, parameter_, weight_.device()) : Tensor();
      TESSERA_DISPATCH(g.device(), linear_backward_weight, as_rows(x_), g, grads[1], grad_bias);
      if (bias_needed) grads[2] = grad_bias;
    }
    return grads;
  }

  std::int64_t multiply_adds(const Shape& y) const override { return y.numel() * weight_.dim(1); }

 private:
  Tensor x_;
  Tensor weight_;  // as the products read it
  DType parameter_;  // dtype of the given weight, and of its gradient
  bool bias_;
};

void check(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  TESSERA_CHECK(x.rank() >= 1 && weight.rank() == 2, ShapeError, "linear: wrong rank: x is ", x.shape(), ", weight is ",
                weight.shape(), "; x needs at least 1 dimension, weight exactly 2");
  TESSERA_CHECK(x.dim(-1) == weight.dim(1), ShapeError, "linear: input features differ: x is ", x.shape(), ", weight is ",
                weight.shape(), "; x.dim(-1)=", x.dim(-1), " must equal weight.dim(1)=", weight.dim(1));
  check_parameters("linear", {"x", x}, {{"weight", weight}});
  if (!bias.defined()) return;
  TESSERA_CHECK(bias.shape() == Shape{weight.dim(0)}, ShapeError, "linear: bias does not fit: weight is ", weight.shape(),
                ", bias is ", bias.shape(), "; bias must be [weight.dim(0)]");
  check_parameters("linear", {"x", x}, {{"bias", bias}});
}

}  // namespace

Var linear(const Var& x, const Var& weight, const Var& bias) {
  check(x.value(), weight.value(), bias.defined() ? bias.value() : Tensor());
  const Tensor input = x.value().contiguous();
  const Tensor w = weight_of_products(weight.value().contiguous(), input.dtype());
  Tensor y = Tensor::empty(input.shape().erase(input.rank() - 1).append(w.dim(0)), input.dtype(), input.device());
  const Tensor b = bias.defined() ? bias.value().contiguous() : Tensor();
  TESSERA_DISPATCH(y.device(), linear_forward, as_rows(input), w, b, as_rows(y));
  auto op = std::make_unique<LinearOp>(input, w, weight.dtype(), bias.defined());
  if (!bias.defined()) return record(std::move(op), {x, weight}, std::move(y));
  return record(std::move(op), {x, weight, bias}, std::move(y));
}

}  // namespace tessera
