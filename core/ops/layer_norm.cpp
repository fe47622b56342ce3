#include "core/ops/layer_norm.h"

#include "core/device/dispatch.h"
#include "core/ops/dense_operands.h"

namespace tessera {
namespace {

class LayerNormOp final : public Op {
 public:
  LayerNormOp(Tensor x, Tensor gamma, Tensor mean, Tensor inv_std)
      : x_(std::move(x)), gamma_(std::move(gamma)), mean_(std::move(mean)), inv_std_(std::move(inv_std)) {}
  std::string_view name() const override { return "layer_norm"; }

  Grads backward(const Tensor& grad_y, NeedsGrad needs) override {
    const Tensor x = as_rows(x_);
    const Tensor g = as_rows(grad_y);
    Grads grads(3);
    if (needs[0]) grads[0] = Tensor::empty_like(x_);
    if (needs[1] || needs[2]) {
      grads[1] = Tensor::empty_like(gamma_);
      grads[2] = Tensor::empty_like(gamma_);
    }
    const Tensor grad_x = needs[0] ? as_rows(grads[0]) : Tensor();
    TESSERA_DISPATCH(x.device(), layer_norm_backward, x, g, gamma_, mean_, inv_std_, grad_x, grads[1], grads[2]);
    return grads;
  }

 private:
  Tensor x_;
  Tensor gamma_;
  Tensor mean_;
  Tensor inv_std_;
};

void check(const Tensor& x, const NamedOperand& operand) {
  TESSERA_CHECK(x.rank() >= 1, ShapeError, "layer_norm: x is a scalar; needs at least 1 dimension");
  TESSERA_CHECK(operand.value.shape() == Shape{x.dim(-1)}, ShapeError, "layer_norm: ", operand.name, " does not fit: x is ",
                x.shape(), ", ", operand.name, " is ", operand.value.shape(), "; ", operand.name, " must be [x.dim(-1)]");
  check_parameters("layer_norm", {"x", x}, {operand});
}

}  // namespace

Var layer_norm(const Var& x, const Var& gamma, const Var& beta, double eps) {
  check(x.value(), {"gamma", gamma.value()});
  check(x.value(), {"beta", beta.value()});
  const Tensor input = x.value().contiguous();
  const Tensor scale = gamma.value().contiguous();
  const Tensor rows = as_rows(input);
  Tensor y = Tensor::empty_like(input);
  const Tensor mean = Tensor::empty({rows.dim(0)}, scale.dtype(), input.device());
  const Tensor inv_std = Tensor::empty_like(mean);
  TESSERA_DISPATCH(y.device(), layer_norm_forward, rows, scale, beta.value().contiguous(), eps, as_rows(y), mean, inv_std);
  return record(std::make_unique<LayerNormOp>(input, scale, mean, inv_std), {x, gamma, beta}, std::move(y));
}

}  // namespace tessera
