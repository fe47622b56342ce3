#include "core/ops/arithmetic.h"

#include <utility>

#include "core/device/dispatch.h"
#include "core/ops/operands.h"
#include "core/ops/reduce.h"

namespace tessera {
namespace {

Tensor output_for(const char* operation, const Var& a, const Var& b) {
  check_operands(operation, "a", a.value(), "b", b.value());
  return Tensor::empty(broadcast_shapes(a.shape(), b.shape(), operation), a.dtype(), a.device());
}

// Saves an operand that only the gradient of the other operand reads.
Tensor saved_for(const Var& other, const Tensor& value) { return other.requires_grad() ? value : Tensor(); }

class AddOp final : public Op {
 public:
  AddOp(std::string_view name, const Shape& a, const Shape& b, double sign) : name_(name), a_(a), b_(b), sign_(sign) {}
  std::string_view name() const override { return name_; }
  Grads backward(const Tensor& grad_y, NeedsGrad needs) override {
    Grads grads(2);
    if (needs[0]) grads[0] = sum_to(grad_y, a_);
    if (needs[1]) grads[1] = sum_to(grad_y, b_, sign_);
    return grads;
  }

 private:
  std::string_view name_;
  Shape a_;
  Shape b_;
  double sign_;
};

class MulOp final : public Op {
 public:
  MulOp(const Shape& shape_a, const Shape& shape_b, Tensor a, Tensor b)
      : shape_a_(shape_a), shape_b_(shape_b), a_(std::move(a)), b_(std::move(b)) {}
  std::string_view name() const override { return "mul"; }
  Grads backward(const Tensor& grad_y, NeedsGrad needs) override {
    Grads grads(2);
    if (needs[0]) grads[0] = sum_product_to(grad_y, b_, shape_a_);
    if (needs[1]) grads[1] = sum_product_to(grad_y, a_, shape_b_);
    return grads;
  }

 private:
  Shape shape_a_;
  Shape shape_b_;
  Tensor a_;
  Tensor b_;
};

class DivOp final : public Op {
 public:
  DivOp(const Shape& shape_a, Tensor b, Tensor y) : shape_a_(shape_a), b_(std::move(b)), y_(std::move(y)) {}
  std::string_view name() const override { return "div"; }
  Grads backward(const Tensor& grad_y, NeedsGrad needs) override {
    Grads grads(2);
    if (needs[0]) grads[0] = sum_quotient_to(grad_y, b_, shape_a_);
    if (needs[1]) {  // b is constant over the axes that the sum runs over
      grads[1] = sum_product_to(grad_y, y_, b_.shape());
      TESSERA_DISPATCH(b_.device(), div_negated, grads[1], b_, grads[1]);
    }
    return grads;
  }

 private:
  Shape shape_a_;
  Tensor b_;
  Tensor y_;
};

class AffineOp final : public Op {
 public:
  AffineOp(std::string_view name, double scale) : name_(name), scale_(scale) {}
  std::string_view name() const override { return name_; }
  Grads backward(const Tensor& grad_y, NeedsGrad) override {
    if (scale_ == 1.0) return {grad_y};
    Tensor grad_x = Tensor::empty_like(grad_y);
    TESSERA_DISPATCH(grad_y.device(), affine, grad_y, scale_, 0.0, grad_x);
    return {std::move(grad_x)};
  }

 private:
  std::string_view name_;
  double scale_;
};

class RdivScalarOp final : public Op {
 public:
  RdivScalarOp(Tensor x, Tensor y) : x_(std::move(x)), y_(std::move(y)) {}
  std::string_view name() const override { return "rdiv_scalar"; }
  Grads backward(const Tensor& grad_y, NeedsGrad) override {
    Tensor grad_x = Tensor::empty_like(y_);
    TESSERA_DISPATCH(x_.device(), mul, grad_y, y_, grad_x);
    TESSERA_DISPATCH(x_.device(), div_negated, grad_x, x_, grad_x);
    return {std::move(grad_x)};
  }

 private:
  Tensor x_;
  Tensor y_;
};

Var affine_var(const char* operation, const Var& x, double scale, double shift) {
  check_floating(operation, x.value());
  Tensor y = Tensor::empty_like(x.value());
  TESSERA_DISPATCH(x.device(), affine, x.value(), scale, shift, y);
  return record(std::make_unique<AffineOp>(operation, scale), {x}, y);
}

}  // namespace

Var add(const Var& a, const Var& b) {
  Tensor y = output_for("add", a, b);
  TESSERA_DISPATCH(a.device(), add, a.value(), b.value(), y);
  return record(std::make_unique<AddOp>("add", a.shape(), b.shape(), 1.0), {a, b}, y);
}

Var sub(const Var& a, const Var& b) {
  Tensor y = output_for("sub", a, b);
  TESSERA_DISPATCH(a.device(), sub, a.value(), b.value(), y);
  return record(std::make_unique<AddOp>("sub", a.shape(), b.shape(), -1.0), {a, b}, y);
}

Var mul(const Var& a, const Var& b) {
  Tensor y = output_for("mul", a, b);
  TESSERA_DISPATCH(a.device(), mul, a.value(), b.value(), y);
  return record(std::make_unique<MulOp>(a.shape(), b.shape(), saved_for(b, a.value()), saved_for(a, b.value())), {a, b}, y);
}

Var div(const Var& a, const Var& b) {
  Tensor y = output_for("div", a, b);
  TESSERA_DISPATCH(a.device(), div, a.value(), b.value(), y);
  return record(std::make_unique<DivOp>(a.shape(), b.value(), saved_for(b, y)), {a, b}, y);
}

Var add_scalar(const Var& x, double value) { return affine_var("add_scalar", x, 1.0, value); }
Var mul_scalar(const Var& x, double value) { return affine_var("mul_scalar", x, value, 0.0); }
Var rsub_scalar(double value, const Var& x) { return affine_var("rsub_scalar", x, -1.0, value); }

Var rdiv_scalar(double value, const Var& x) {
  check_floating("rdiv_scalar", x.value());
  Tensor y = Tensor::empty_like(x.value());
  TESSERA_DISPATCH(x.device(), rdiv_scalar, value, x.value(), y);
  return record(std::make_unique<RdivScalarOp>(x.value(), y), {x}, y);
}

}  // namespace tessera
