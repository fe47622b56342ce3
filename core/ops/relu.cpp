#include "core/ops/relu.h"

#include <utility>

#include "core/device/dispatch.h"
#include "core/ops/operands.h"

namespace tessera {
namespace {

class ReluOp final : public Op {
 public:
  explicit ReluOp(Tensor y) : y_(std::move(y)) {}
  std::string_view name() const override { return "relu"; }
  Grads backward(const Tensor& grad_y, NeedsGrad) override {
    Tensor grad_x = Tensor::empty_like(y_);
    TESSERA_DISPATCH(y_.device(), relu_backward, y_, grad_y, grad_x);
    return {std::move(grad_x)};
  }

 private:
  Tensor y_;
};

}  // namespace

Var relu(const Var& x) {
  check_floating("relu", x.value());
  Tensor y = Tensor::empty_like(x.value());
  TESSERA_DISPATCH(x.device(), relu_forward, x.value(), y);
  return record(std::make_unique<ReluOp>(y), {x}, y);
}

}  // namespace tessera
