#include "core/ops/gelu.h"

#include <utility>

#include "core/device/dispatch.h"
#include "core/ops/operands.h"

namespace tessera {
namespace {

class GeluOp final : public Op {
 public:
  GeluOp(Tensor x, GeluForm form) : x_(std::move(x)), form_(form) {}
  std::string_view name() const override { return "gelu"; }
  Grads backward(const Tensor& grad_y, NeedsGrad) override {
    Tensor grad_x = Tensor::empty_like(x_);
    TESSERA_DISPATCH(x_.device(), gelu_backward, x_, grad_y, form_, grad_x);
    return {std::move(grad_x)};
  }

 private:
  Tensor x_;
  GeluForm form_;
};

}  // namespace

Var gelu(const Var& x, GeluForm form) {
  check_floating("gelu", x.value());
  Tensor y = Tensor::empty_like(x.value());
  TESSERA_DISPATCH(x.device(), gelu_forward, x.value(), form, y);
  return record(std::make_unique<GeluOp>(x.value(), form), {x}, y);
}

}  // namespace tessera
