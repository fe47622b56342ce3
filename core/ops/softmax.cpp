#include "core/ops/softmax.h"

#include <utility>

#include "core/device/dispatch.h"
#include "core/ops/operands.h"

namespace tessera {
namespace {

class SoftmaxOp final : public Op {
 public:
  explicit SoftmaxOp(Tensor y) : y_(std::move(y)) {}
  std::string_view name() const override { return "softmax"; }
  Grads backward(const Tensor& grad_y, NeedsGrad) override {
    Tensor grad_x = Tensor::empty_like(y_);
    TESSERA_DISPATCH(y_.device(), softmax_backward, y_, grad_y, grad_x);
    return {std::move(grad_x)};
  }

 private:
  Tensor y_;
};

class LogSoftmaxOp final : public Op {
 public:
  explicit LogSoftmaxOp(Tensor y) : y_(std::move(y)) {}
  std::string_view name() const override { return "log_softmax"; }
  Grads backward(const Tensor& grad_y, NeedsGrad) override {
    Tensor grad_x = Tensor::empty_like(y_);
    TESSERA_DISPATCH(y_.device(), log_softmax_backward, y_, grad_y, grad_x);
    return {std::move(grad_x)};
  }

 private:
  Tensor y_;
};

Tensor output_for(const char* operation, const Var& x) {
  check_floating(operation, x.value());
  TESSERA_CHECK(x.shape().rank() >= 1, ShapeError, operation, ": x is a scalar, needs at least 1 dimension");
  return Tensor::empty_like(x.value());
}

}  // namespace

Var softmax(const Var& x) {
  Tensor y = output_for("softmax", x);
  TESSERA_DISPATCH(x.device(), softmax_forward, x.value().contiguous(), y);
  return record(std::make_unique<SoftmaxOp>(y), {x}, y);
}

Var log_softmax(const Var& x) {
  Tensor y = output_for("log_softmax", x);
  TESSERA_DISPATCH(x.device(), log_softmax_forward, x.value().contiguous(), y);
  return record(std::make_unique<LogSoftmaxOp>(y), {x}, y);
}

}  // namespace tessera
