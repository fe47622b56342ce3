#include "core/ops/pool2d.h"

#include <limits>

#include "core/device/dispatch.h"
#include "core/ops/dense_operands.h"

namespace tessera {
namespace {

class MaxPool2dOp final : public Op {
 public:
  MaxPool2dOp(const Shape& x, Tensor argmax, const Pool2dOptions& options)
      : shape_(x), argmax_(std::move(argmax)), options_(options) {}
  std::string_view name() const override { return "max_pool2d"; }
  Grads backward(const Tensor& grad_y, NeedsGrad) override {
    Tensor grad_x = Tensor::empty(shape_, grad_y.dtype(), grad_y.device());
    TESSERA_DISPATCH(grad_y.device(), max_pool2d_backward, grad_y, argmax_, grad_x, options_);
    return {std::move(grad_x)};
  }

 private:
  Shape shape_;
  Tensor argmax_;
  Pool2dOptions options_;
};

class AvgPool2dOp final : public Op {
 public:
  AvgPool2dOp(const Shape& x, const Pool2dOptions& options) : shape_(x), options_(options) {}
  std::string_view name() const override { return "avg_pool2d"; }
  Grads backward(const Tensor& grad_y, NeedsGrad) override {
    Tensor grad_x = Tensor::empty(shape_, grad_y.dtype(), grad_y.device());
    TESSERA_DISPATCH(grad_y.device(), avg_pool2d_backward, grad_y, grad_x, options_);
    return {std::move(grad_x)};
  }

 private:
  Shape shape_;
  Pool2dOptions options_;
};

class GlobalAvgPoolOp final : public Op {
 public:
  explicit GlobalAvgPoolOp(const Shape& x) : shape_(x) {}
  std::string_view name() const override { return "global_avg_pool"; }
  Grads backward(const Tensor& grad_y, NeedsGrad) override {
    Tensor grad_x = Tensor::empty(shape_, grad_y.dtype(), grad_y.device());
    TESSERA_DISPATCH(grad_y.device(), global_avg_pool_backward, grad_y, grad_x);
    return {std::move(grad_x)};
  }

 private:
  Shape shape_;
};

Shape output_shape(const char* operation, const Shape& x, const Pool2dOptions& options) {
  const auto& [kernel, stride, padding] = options;
  TESSERA_CHECK(x.rank() == 4, ShapeError, operation, ": wrong rank: x is ", x, "; x must be [n, h, w, c]");
  const Shape y{x[0], window_count(operation, "height", x[1], kernel.h, stride.h, padding.h),
                window_count(operation, "width", x[2], kernel.w, stride.w, padding.w), x[3]};
  TESSERA_CHECK(2 * padding.h <= kernel.h && 2 * padding.w <= kernel.w, ShapeError, operation, ": too much padding: kernel is ",
                kernel, ", padding ", padding, "; padding must be at most half the kernel");
  return checked_size(operation, y);
}

}  // namespace

Shape pool2d_output_shape(const Shape& x, const Pool2dOptions& options) { return output_shape("pool2d", x, options); }

Var max_pool2d(const Var& x, const Pool2dOptions& options) {
  check_operands("max_pool2d", {{"x", x.value()}});
  Tensor y = Tensor::empty(output_shape("max_pool2d", x.shape(), options), x.dtype(), x.device());
  TESSERA_CHECK(x.shape()[1] * x.shape()[2] <= std::numeric_limits<std::int32_t>::max(), ShapeError,
                "max_pool2d: image too large: x is ", x.shape(), "; h * w must fit in 31 bits");
  const Tensor argmax = Tensor::empty(y.shape(), DType::i32, y.device());
  TESSERA_DISPATCH(y.device(), max_pool2d_forward, x.value().contiguous(), y, argmax, options);
  return record(std::make_unique<MaxPool2dOp>(x.shape(), argmax, options), {x}, std::move(y));
}

Var avg_pool2d(const Var& x, const Pool2dOptions& options) {
  check_operands("avg_pool2d", {{"x", x.value()}});
  Tensor y = Tensor::empty(output_shape("avg_pool2d", x.shape(), options), x.dtype(), x.device());
  TESSERA_DISPATCH(y.device(), avg_pool2d_forward, x.value().contiguous(), y, options);
  return record(std::make_unique<AvgPool2dOp>(x.shape(), options), {x}, std::move(y));
}

Var global_avg_pool(const Var& x) {
  const Shape& shape = x.shape();
  TESSERA_CHECK(shape.rank() == 4 && shape[1] >= 1 && shape[2] >= 1, ShapeError, "global_avg_pool: wrong shape: x is ", shape,
                "; x must be [n, h, w, c] with at least 1 pixel");
  check_operands("global_avg_pool", {{"x", x.value()}});
  Tensor y = Tensor::empty({shape[0], shape[3]}, x.dtype(), x.device());
  TESSERA_DISPATCH(y.device(), global_avg_pool_forward, x.value().contiguous(), y);
  return record(std::make_unique<GlobalAvgPoolOp>(shape), {x}, std::move(y));
}

}  // namespace tessera
