#include "core/ops/where.h"

#include <utility>

#include "core/device/dispatch.h"
#include "core/ops/operands.h"
#include "core/ops/reduce.h"

namespace tessera {
namespace {

class WhereOp final : public Op {
 public:
  WhereOp(Tensor mask, const Shape& a, const Shape& b) : mask_(std::move(mask)), a_(a), b_(b) {}
  std::string_view name() const override { return "where"; }
  Grads backward(const Tensor& grad_y, NeedsGrad needs) override {
    Grads grads(2);
    if (needs[0]) grads[0] = grad_of(grad_y, a_, false);
    if (needs[1]) grads[1] = grad_of(grad_y, b_, true);
    return grads;
  }

 private:
  Tensor grad_of(const Tensor& grad_y, const Shape& shape, bool inverted) const {
    const Tensor grad = Tensor::empty_like(grad_y);
    TESSERA_DISPATCH(grad_y.device(), where_backward, mask_, grad_y, inverted, grad);
    return sum_to(grad, shape);
  }

  Tensor mask_;
  Shape a_;
  Shape b_;
};

}  // namespace

Var where(const Tensor& mask, const Var& a, const Var& b) {
  check_operands("where", "a", a.value(), "b", b.value());
  check_companion("where", "a", a.value(), "mask", mask, DType::u8);
  const Shape shape = broadcast_shapes(mask.shape(), broadcast_shapes(a.shape(), b.shape(), "where"), "where");
  Tensor y = Tensor::empty(shape, a.dtype(), a.device());
  TESSERA_DISPATCH(a.device(), where_forward, mask, a.value(), b.value(), y);
  return record(std::make_unique<WhereOp>(mask, a.shape(), b.shape()), {a, b}, y);
}

}  // namespace tessera
