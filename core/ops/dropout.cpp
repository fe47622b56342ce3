#include "core/ops/dropout.h"

#include <utility>

#include "core/device/dispatch.h"
#include "core/device/step_state.h"
#include "core/ops/operands.h"

namespace tessera {
namespace {

class DropoutOp final : public Op {
 public:
  DropoutOp(double p, Tensor mask) : p_(p), mask_(std::move(mask)) {}
  std::string_view name() const override { return "dropout"; }
  Grads backward(const Tensor& grad_y, NeedsGrad) override {
    Tensor grad_x = Tensor::empty_like(grad_y);
    TESSERA_DISPATCH(grad_y.device(), dropout_backward, grad_y, p_, mask_, grad_x);
    return {std::move(grad_x)};
  }

 private:
  double p_;
  Tensor mask_;
};

}  // namespace

Var dropout(const Var& x, double p, RngStream stream, const Tensor& step_state) {
  TESSERA_CHECK(p >= 0.0 && p < 1.0, ConfigError, "dropout: p is ", p, "; needs 0 <= p < 1");
  check_floating("dropout", x.value());
  if (p == 0.0) return x;
  check_companion("dropout", "x", x.value(), "step_state", step_state, DType::u8);
  TESSERA_CHECK(step_state.bytes() == sizeof(StepStateData), ShapeError, "dropout: step_state is ", describe(step_state),
                "; needs the ", sizeof(StepStateData), " bytes of a StepState");
  Tensor y = Tensor::empty_like(x.value());
  Tensor mask = Tensor::empty(x.shape(), DType::u8, x.device());
  TESSERA_DISPATCH(x.device(), dropout_forward, x.value().contiguous(), p, stream, step_state, y, mask);
  return record(std::make_unique<DropoutOp>(p, std::move(mask)), {x}, y);
}

}  // namespace tessera
