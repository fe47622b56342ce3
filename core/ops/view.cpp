#include "core/ops/view.h"

#include <utility>
#include <vector>

#include "core/support/error.h"

namespace tessera {
namespace {

class ReshapeOp final : public Op {
 public:
  ReshapeOp(std::string_view name, const Shape& x) : name_(name), x_(x) {}
  std::string_view name() const override { return name_; }
  Grads backward(const Tensor& grad_y, NeedsGrad) override { return {grad_y.reshape(x_)}; }

 private:
  std::string_view name_;
  Shape x_;
};

class PermuteOp final : public Op {
 public:
  explicit PermuteOp(std::vector<int> inverse) : inverse_(std::move(inverse)) {}
  std::string_view name() const override { return "permute"; }
  Grads backward(const Tensor& grad_y, NeedsGrad) override { return {grad_y.permute(inverse_)}; }

 private:
  std::vector<int> inverse_;
};

class SliceOp final : public Op {
 public:
  SliceOp(const Shape& x, int axis, std::int64_t begin, std::int64_t end) : x_(x), axis_(axis), begin_(begin), end_(end) {}
  std::string_view name() const override { return "slice"; }
  Grads backward(const Tensor& grad_y, NeedsGrad) override {
    Tensor grad_x = Tensor::zeros(x_, grad_y.dtype(), grad_y.device());
    grad_x.slice(axis_, begin_, end_).copy_from(grad_y);
    return {std::move(grad_x)};
  }

 private:
  Shape x_;
  int axis_;
  std::int64_t begin_;
  std::int64_t end_;
};

}  // namespace

Var reshape(const Var& x, const Shape& shape) {
  return record(std::make_unique<ReshapeOp>("reshape", x.shape()), {x}, x.value().reshape(shape));
}

Var permute(const Var& x, std::span<const int> axes) {
  Tensor y = x.value().permute(axes);
  std::vector<int> inverse(axes.size());
  for (std::size_t i = 0; i < axes.size(); ++i) {
    inverse[static_cast<std::size_t>(normalize_axis(axes[i], y.rank(), "permute"))] = static_cast<int>(i);
  }
  return record(std::make_unique<PermuteOp>(std::move(inverse)), {x}, std::move(y));
}

Var flatten(const Var& x) {
  TESSERA_CHECK(x.shape().rank() >= 1, ShapeError, "flatten: x is a scalar, needs at least 1 dimension");
  std::int64_t rest = 1;
  for (int axis = 1; axis < x.shape().rank(); ++axis) rest *= x.shape()[axis];
  return record(std::make_unique<ReshapeOp>("flatten", x.shape()), {x}, x.value().reshape({x.shape()[0], rest}));
}

Var slice(const Var& x, int axis, std::int64_t begin, std::int64_t end) {
  return record(std::make_unique<SliceOp>(x.shape(), axis, begin, end), {x}, x.value().slice(axis, begin, end));
}

}  // namespace tessera
