#include "core/ops/swiglu.h"

#include <utility>

#include "core/device/dispatch.h"
#include "core/ops/dense_operands.h"
#include "core/ops/operands.h"

namespace tessera {
namespace {

class SwigluOp final : public Op {
 public:
  explicit SwigluOp(Tensor x) : x_(std::move(x)) {}
  std::string_view name() const override { return "swiglu"; }
  Grads backward(const Tensor& grad_y, NeedsGrad) override {
    Tensor grad_x = Tensor::empty_like(x_);
    TESSERA_DISPATCH(x_.device(), swiglu_backward, as_rows(x_), as_rows(grad_y), as_rows(grad_x));
    return {std::move(grad_x)};
  }

 private:
  Tensor x_;
};

}  // namespace

Var swiglu(const Var& x) {
  check_floating("swiglu", x.value());
  Shape shape = x.shape();
  TESSERA_CHECK(shape.rank() >= 1 && shape[shape.rank() - 1] % 2 == 0, ShapeError, "swiglu: no two halves: x is ", shape,
                "; its last dimension must be even");
  shape.set(shape.rank() - 1, shape[shape.rank() - 1] / 2);
  const Tensor input = x.value().contiguous();
  Tensor y = Tensor::empty(shape, input.dtype(), input.device());
  TESSERA_DISPATCH(x.device(), swiglu_forward, as_rows(input), as_rows(y));
  return record(std::make_unique<SwigluOp>(input), {x}, y);
}

}  // namespace tessera
