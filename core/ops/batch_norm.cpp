#include "core/ops/batch_norm.h"

#include "core/ops/dense_operands.h"
#include "core/ops/dispatch.h"

namespace tessera {
namespace {

Tensor as_rows(const Tensor& x) { return x.reshape({x.shape().erase(x.rank() - 1).numel(), x.dim(-1)}); }

class BatchNormOp final : public Op {
 public:
  BatchNormOp(Tensor x, Tensor gamma, Tensor mean, Tensor inv_std, bool training)
      : x_(std::move(x)), gamma_(std::move(gamma)), mean_(std::move(mean)), inv_std_(std::move(inv_std)), training_(training) {}
  std::string_view name() const override { return "batch_norm"; }

  Grads backward(const Tensor& grad_y, NeedsGrad needs) override {
    const Tensor x = as_rows(x_);
    const Tensor g = as_rows(grad_y);
    Grads grads(3);
    if (training_ || needs[1] || needs[2]) {
      grads[1] = Tensor::empty_like(gamma_);
      grads[2] = Tensor::empty_like(gamma_);
      TESSERA_DISPATCH(x.device(), batch_norm_backward_parameters, x, g, mean_, inv_std_, grads[1], grads[2]);
    }
    if (needs[0]) {
      grads[0] = Tensor::empty_like(x_);
      TESSERA_DISPATCH(x.device(), batch_norm_backward_input, x, g, mean_, inv_std_, gamma_, grads[1], grads[2], training_,
                       as_rows(grads[0]));
    }
    return grads;
  }

 private:
  Tensor x_;
  Tensor gamma_;
  Tensor mean_;
  Tensor inv_std_;
  bool training_;
};

void check(const Tensor& x, std::initializer_list<NamedOperand> per_channel) {
  TESSERA_CHECK(x.rank() >= 1, ShapeError, "batch_norm: x is a scalar; needs at least 1 dimension");
  for (const NamedOperand& operand : per_channel) {
    TESSERA_CHECK(operand.value.shape() == Shape{x.dim(-1)}, ShapeError, "batch_norm: ", operand.name, " does not fit: x is ",
                  x.shape(), ", ", operand.name, " is ", operand.value.shape(), "; ", operand.name, " must be [x.dim(-1)]");
    check_operands("batch_norm", {{"x", x}, operand});
  }
}

}  // namespace

Var batch_norm(const Var& x, const Var& gamma, const Var& beta, const Tensor& running_mean, const Tensor& running_var,
               const BatchNormOptions& options) {
  check(x.value(),
        {{"gamma", gamma.value()}, {"beta", beta.value()}, {"running_mean", running_mean}, {"running_var", running_var}});
  TESSERA_CHECK(running_mean.is_contiguous() && running_var.is_contiguous(), ShapeError,
                "batch_norm: running statistics are updated in place; running_mean and running_var must be contiguous");
  const Tensor input = x.value().contiguous();
  const Tensor scale = gamma.value().contiguous();
  const Tensor rows = as_rows(input);
  const Device device = input.device();
  Tensor mean = running_mean.clone();
  Tensor var = running_var;
  if (options.training && rows.dim(0) > 0) {
    mean = Tensor::empty_like(running_mean);
    var = Tensor::empty_like(running_var);
    TESSERA_DISPATCH(device, batch_norm_statistics, rows, mean, var);
    TESSERA_DISPATCH(device, batch_norm_update, mean, var, running_mean, running_var, rows.dim(0), options.momentum);
  }
  const Tensor inv_std = Tensor::empty_like(var);
  TESSERA_DISPATCH(device, batch_norm_inv_std, var, inv_std, options.eps);
  Tensor y = Tensor::empty_like(input);
  TESSERA_DISPATCH(device, batch_norm_forward, rows, mean, inv_std, scale, beta.value().contiguous(), as_rows(y));
  return record(std::make_unique<BatchNormOp>(input, scale, mean, inv_std, options.training), {x, gamma, beta}, std::move(y));
}

}  // namespace tessera
