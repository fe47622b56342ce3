#include "core/ops/unary.h"

#include <utility>

#include "core/device/dispatch.h"
#include "core/ops/arithmetic.h"
#include "core/ops/operands.h"

namespace tessera {
namespace {

// An op whose backward is one kernel of (saved, grad_y, grad_x).
template <class Backward>
class UnaryOp final : public Op {
 public:
  UnaryOp(std::string_view name, Tensor saved, Backward backward)
      : name_(name), saved_(std::move(saved)), backward_(std::move(backward)) {}
  std::string_view name() const override { return name_; }
  Grads backward(const Tensor& grad_y, NeedsGrad) override {
    Tensor grad_x = Tensor::empty_like(grad_y);
    backward_(saved_, grad_y, grad_x);
    return {std::move(grad_x)};
  }

 private:
  std::string_view name_;
  Tensor saved_;
  Backward backward_;
};

Tensor output_for(const char* operation, const Var& x) {
  check_floating(operation, x.value());
  return Tensor::empty_like(x.value());
}

template <class Backward>
Var record_unary(const char* operation, const Var& x, const Tensor& saved, const Tensor& y, Backward backward) {
  return record(std::make_unique<UnaryOp<Backward>>(operation, saved, std::move(backward)), {x}, y);
}

}  // namespace

Var neg(const Var& x) {
  Tensor y = output_for("neg", x);
  TESSERA_DISPATCH(x.device(), affine, x.value(), -1.0, 0.0, y);
  return record_unary("neg", x, Tensor(), y, [](const Tensor&, const Tensor& grad_y, const Tensor& grad_x) {
    TESSERA_DISPATCH(grad_y.device(), affine, grad_y, -1.0, 0.0, grad_x);
  });
}

Var exp(const Var& x) {
  Tensor y = output_for("exp", x);
  TESSERA_DISPATCH(x.device(), exp_forward, x.value(), y);
  return record_unary("exp", x, y, y, [](const Tensor& saved, const Tensor& grad_y, const Tensor& grad_x) {
    TESSERA_DISPATCH(saved.device(), exp_backward, saved, grad_y, grad_x);
  });
}

Var log(const Var& x) {
  Tensor y = output_for("log", x);
  TESSERA_DISPATCH(x.device(), log_forward, x.value(), y);
  return record_unary("log", x, x.value(), y, [](const Tensor& saved, const Tensor& grad_y, const Tensor& grad_x) {
    TESSERA_DISPATCH(saved.device(), log_backward, saved, grad_y, grad_x);
  });
}

Var sqrt(const Var& x) {
  Tensor y = output_for("sqrt", x);
  TESSERA_DISPATCH(x.device(), sqrt_forward, x.value(), y);
  return record_unary("sqrt", x, y, y, [](const Tensor& saved, const Tensor& grad_y, const Tensor& grad_x) {
    TESSERA_DISPATCH(saved.device(), sqrt_backward, saved, grad_y, grad_x);
  });
}

Var sigmoid(const Var& x) {
  Tensor y = output_for("sigmoid", x);
  TESSERA_DISPATCH(x.device(), sigmoid_forward, x.value(), y);
  return record_unary("sigmoid", x, y, y, [](const Tensor& saved, const Tensor& grad_y, const Tensor& grad_x) {
    TESSERA_DISPATCH(saved.device(), sigmoid_backward, saved, grad_y, grad_x);
  });
}

Var tanh(const Var& x) {
  Tensor y = output_for("tanh", x);
  TESSERA_DISPATCH(x.device(), tanh_forward, x.value(), y);
  return record_unary("tanh", x, y, y, [](const Tensor& saved, const Tensor& grad_y, const Tensor& grad_x) {
    TESSERA_DISPATCH(saved.device(), tanh_backward, saved, grad_y, grad_x);
  });
}

Var silu(const Var& x) {
  Tensor y = output_for("silu", x);
  TESSERA_DISPATCH(x.device(), silu_forward, x.value(), y);
  return record_unary("silu", x, x.value(), y, [](const Tensor& saved, const Tensor& grad_y, const Tensor& grad_x) {
    TESSERA_DISPATCH(saved.device(), silu_backward, saved, grad_y, grad_x);
  });
}

Var pow(const Var& x, double exponent) {
  Tensor y = output_for("pow", x);
  TESSERA_DISPATCH(x.device(), pow_forward, x.value(), exponent, y);
  return record_unary("pow", x, x.value(), y, [exponent](const Tensor& saved, const Tensor& grad_y, const Tensor& grad_x) {
    TESSERA_DISPATCH(saved.device(), pow_backward, saved, exponent, grad_y, grad_x);
  });
}

Var clamp(const Var& x, double low, double high) {
  TESSERA_CHECK(low <= high, ConfigError, "clamp: bounds are ", low, " and ", high, "; needs low <= high");
  Tensor y = output_for("clamp", x);
  TESSERA_DISPATCH(x.device(), clamp_forward, x.value(), low, high, y);
  return record_unary("clamp", x, x.value(), y, [low, high](const Tensor& saved, const Tensor& grad_y, const Tensor& grad_x) {
    TESSERA_DISPATCH(saved.device(), clamp_backward, saved, low, high, grad_y, grad_x);
  });
}

}  // namespace tessera
