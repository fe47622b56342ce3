#include "core/ops/gather.h"

#include <utility>

#include "core/device/dispatch.h"
#include "core/ops/operands.h"

namespace tessera {
namespace {

class GatherOp final : public Op {
 public:
  GatherOp(const Shape& x, int axis, Tensor index) : x_(x), axis_(axis), index_(std::move(index)) {}
  std::string_view name() const override { return "gather"; }
  Grads backward(const Tensor& grad_y, NeedsGrad) override {
    Tensor grad_x = Tensor::empty(x_, grad_y.dtype(), grad_y.device());
    TESSERA_DISPATCH(grad_y.device(), gather_backward, grad_y, axis_, index_, grad_x);
    return {std::move(grad_x)};
  }

 private:
  Shape x_;
  int axis_;
  Tensor index_;
};

}  // namespace

Var gather(const Var& x, int axis, const Tensor& index) {
  check_floating("gather", x.value());
  check_companion("gather", "x", x.value(), "index", index, DType::i64);
  const int at = normalize_axis(axis, x.shape().rank(), "gather");
  bool fits = index.rank() == x.shape().rank();
  for (int i = 0; fits && i < index.rank(); ++i) fits = i == at || index.shape()[i] <= x.shape()[i];
  TESSERA_CHECK(fits, ShapeError, "gather: shapes do not fit: x is ", x.shape(), ", index is ", index.shape(),
                "; needs one rank, and no axis of index but ", at, " longer than x's");
  Tensor y = Tensor::empty(index.shape(), x.dtype(), x.device());
  TESSERA_DISPATCH(x.device(), gather_forward, x.value(), at, index, y);
  return record(std::make_unique<GatherOp>(x.shape(), at, index), {x}, y);
}

}  // namespace tessera
