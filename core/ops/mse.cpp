#include "core/ops/mse.h"

#include <utility>

#include "core/device/dispatch.h"
#include "core/ops/operands.h"

namespace tessera {
namespace {

class MseOp final : public Op {
 public:
  MseOp(Tensor x, Tensor target) : x_(std::move(x)), target_(std::move(target)) {}
  std::string_view name() const override { return "mse"; }
  Grads backward(const Tensor& grad_y, NeedsGrad needs) override {
    Grads grads(2);
    const double scale = 2.0 / static_cast<double>(x_.numel());
    if (needs[0]) {
      grads[0] = Tensor::empty_like(x_);
      TESSERA_DISPATCH(x_.device(), mse_backward, x_, target_, grad_y, scale, grads[0]);
    }
    if (needs[1]) {
      grads[1] = Tensor::empty_like(x_);
      TESSERA_DISPATCH(x_.device(), mse_backward, x_, target_, grad_y, -scale, grads[1]);
    }
    return grads;
  }

 private:
  Tensor x_;
  Tensor target_;
};

}  // namespace

Var mse(const Var& x, const Var& target) {
  check_operands("mse", "x", x.value(), "target", target.value());
  check_real("mse", x.value());
  TESSERA_CHECK(x.shape() == target.shape(), ShapeError, "mse: shapes differ: x is ", x.shape(), ", target is ", target.shape());
  TESSERA_CHECK(x.value().numel() > 0, ShapeError, "mse: no elements to average: x is ", x.shape());
  Tensor y = Tensor::empty({}, x.dtype(), x.device());
  TESSERA_DISPATCH(x.device(), mse_forward, x.value(), target.value(), y);
  return record(std::make_unique<MseOp>(x.value(), target.value()), {x, target}, y);
}

}  // namespace tessera
