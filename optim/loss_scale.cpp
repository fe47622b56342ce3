#include "optim/loss_scale.h"

#include <utility>

#include "core/device/dispatch.h"
#include "core/ops/operands.h"

namespace tessera {
namespace {

Tensor scaled(const Tensor& x, const Tensor& step_state) {
  Tensor y = Tensor::empty_like(x);
  TESSERA_DISPATCH(x.device(), multiply_by_loss_scale, x, step_state, y);
  return y;
}

class LossScaleOp final : public Op {
 public:
  explicit LossScaleOp(Tensor step_state) : step_state_(std::move(step_state)) {}
  std::string_view name() const override { return "loss_scale"; }
  Grads backward(const Tensor& grad_y, NeedsGrad) override { return {scaled(grad_y, step_state_)}; }

 private:
  Tensor step_state_;
};

}  // namespace

Var scaled_by_loss_scale(const Var& loss, const StepState& step_state) {
  check_companion("loss_scale", "loss", loss.value(), "step_state", step_state.tensor(), DType::u8);
  const Tensor y = scaled(loss.value(), step_state.tensor());
  return record(std::make_unique<LossScaleOp>(step_state.tensor()), {loss}, y);
}

void unscale_gradients(const std::vector<NamedParameter>& parameters, const StepState& step_state) {
  std::vector<Tensor> gradients;
  for (const NamedParameter& named : parameters) {
    Parameter& parameter = *named.parameter;
    if (!parameter.trainable() || !parameter.grad().defined()) continue;
    // Ops may hand one tensor to two inputs; dividing it in place for both would divide it twice.
    if (!parameter.grad().sole_owner() || !parameter.grad().is_contiguous()) parameter.set_grad(parameter.grad().clone());
    gradients.push_back(parameter.grad());
  }
  TESSERA_DISPATCH(step_state.tensor().device(), unscale, gradients, step_state.tensor());
}

void update_loss_scale(const StepState& step_state) {
  TESSERA_DISPATCH(step_state.tensor().device(), update_scale, step_state.tensor());
}

}  // namespace tessera
