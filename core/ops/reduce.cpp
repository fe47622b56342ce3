#include "core/ops/reduce.h"

#include <array>
#include <utility>
#include <vector>

#include "core/device/dispatch.h"
#include "core/ops/arithmetic.h"
#include "core/ops/operands.h"

namespace tessera {
namespace {

// The axes of one reduction and the shapes that follow from them.
struct Plan {
  std::array<bool, Shape::kMaxRank> reduced{};
  Shape kept;    // reduced axes have size 1
  Shape result;  // as the caller sees it
  std::int64_t count = 1;  // elements that each result is reduced from

  Plan(const char* operation, const Shape& x, std::span<const int> axes, bool keep_dims) : kept(x) {
    for (const int given : axes) {
      const int axis = normalize_axis(given, x.rank(), operation);
      bool& mark = reduced[static_cast<std::size_t>(axis)];
      TESSERA_CHECK(!mark, ShapeError, operation, ": axis ", given, " stands twice; x is ", x);
      mark = true;
      count *= x[axis];
      kept.set(axis, 1);
    }
    for (int axis = 0; axis < x.rank(); ++axis) {
      if (keep_dims || !reduced[static_cast<std::size_t>(axis)]) result = result.append(kept[axis]);
    }
  }

  // Kept axes first, reduced axes last.
  std::vector<int> order(int rank) const {
    std::vector<int> axes;
    for (const bool last : {false, true}) {
      for (int axis = 0; axis < rank; ++axis) {
        if (reduced[static_cast<std::size_t>(axis)] == last) axes.push_back(axis);
      }
    }
    return axes;
  }
};

std::vector<int> all_axes(const Var& x) {
  std::vector<int> axes;
  for (int axis = 0; axis < x.shape().rank(); ++axis) axes.push_back(axis);
  return axes;
}

Tensor scaled(const Tensor& x, double scale) {
  if (scale == 1.0) return x;
  Tensor y = Tensor::empty_like(x);
  TESSERA_DISPATCH(x.device(), affine, x, scale, 0.0, y);
  return y;
}

class SumOp final : public Op {
 public:
  SumOp(std::string_view name, const Shape& x, const Shape& kept, double scale)
      : name_(name), x_(x), kept_(kept), scale_(scale) {}
  std::string_view name() const override { return name_; }
  Grads backward(const Tensor& grad_y, NeedsGrad) override { return {scaled(grad_y, scale_).reshape(kept_).expand(x_)}; }

 private:
  std::string_view name_;
  Shape x_;
  Shape kept_;
  double scale_;
};

Var sum_scaled(const char* operation, const Var& x, const Plan& plan, double scale) {
  Tensor y = Tensor::empty(plan.kept, x.dtype(), x.device());
  TESSERA_DISPATCH(x.device(), sum_forward, x.value(), scale, y);
  return record(std::make_unique<SumOp>(operation, x.shape(), plan.kept, scale), {x}, y.reshape(plan.result));
}

class MaxOp final : public Op {
 public:
  MaxOp(Tensor index, const Shape& moved, std::vector<int> order)
      : index_(std::move(index)), moved_(moved), order_(std::move(order)) {}
  std::string_view name() const override { return "max"; }
  Grads backward(const Tensor& grad_y, NeedsGrad) override {
    Tensor grad_x = Tensor::empty(moved_, grad_y.dtype(), grad_y.device());
    TESSERA_DISPATCH(grad_y.device(), max_backward, grad_y, index_, grad_x);
    std::vector<int> inverse(order_.size());
    for (std::size_t i = 0; i < order_.size(); ++i) inverse[static_cast<std::size_t>(order_[i])] = static_cast<int>(i);
    return {grad_x.permute(inverse)};
  }

 private:
  Tensor index_;
  Shape moved_;  // x with the reduced axes last
  std::vector<int> order_;
};

template <class Kernel>
Tensor sum_pairs(const char* operation, const Tensor& a, const Tensor& b, const Shape& shape, Kernel&& kernel) {
  check_operands(operation, "a", a, "b", b);
  Tensor y = Tensor::empty(shape, a.dtype(), a.device());
  kernel(y);
  return y;
}

}  // namespace

Var sum(const Var& x, std::span<const int> axes, bool keep_dims) {
  check_floating("sum", x.value());
  return sum_scaled("sum", x, Plan("sum", x.shape(), axes, keep_dims), 1.0);
}

Var mean(const Var& x, std::span<const int> axes, bool keep_dims) {
  check_floating("mean", x.value());
  const Plan plan("mean", x.shape(), axes, keep_dims);
  TESSERA_CHECK(plan.count > 0, ShapeError, "mean: no elements to average: x is ", x.shape());
  return sum_scaled("mean", x, plan, 1.0 / static_cast<double>(plan.count));
}

Var max(const Var& x, std::span<const int> axes, bool keep_dims) {
  check_floating("max", x.value());
  const Plan plan("max", x.shape(), axes, keep_dims);
  TESSERA_CHECK(plan.count > 0, ShapeError, "max: no elements to compare: x is ", x.shape());
  std::vector<int> order = plan.order(x.shape().rank());
  const Tensor moved = x.value().permute(order).contiguous();
  Tensor y = Tensor::empty(plan.result, x.dtype(), x.device());
  Tensor index = Tensor::empty({y.numel()}, DType::i64, x.device());
  TESSERA_DISPATCH(x.device(), max_forward, moved, y, index);
  return record(std::make_unique<MaxOp>(std::move(index), moved.shape(), std::move(order)), {x}, y);
}

Var sum(const Var& x) { return sum(x, all_axes(x)); }
Var mean(const Var& x) { return mean(x, all_axes(x)); }

Tensor sum_to(const Tensor& x, const Shape& shape, double scale) {
  check_floating("sum_to", x);
  if (x.shape() == shape) return scaled(x, scale);
  Tensor y = Tensor::empty(shape, x.dtype(), x.device());
  TESSERA_DISPATCH(x.device(), sum_forward, x, scale, y);
  return y;
}

Tensor sum_product_to(const Tensor& a, const Tensor& b, const Shape& shape) {
  return sum_pairs("sum_product_to", a, b, shape, [&](const Tensor& y) {
    if (a.shape() == shape) {
      TESSERA_DISPATCH(a.device(), mul, a, b, y);
    } else {
      TESSERA_DISPATCH(a.device(), sum_product, a, b, y);
    }
  });
}

Tensor sum_quotient_to(const Tensor& a, const Tensor& b, const Shape& shape) {
  return sum_pairs("sum_quotient_to", a, b, shape, [&](const Tensor& y) {
    if (a.shape() == shape) {
      TESSERA_DISPATCH(a.device(), div, a, b, y);
    } else {
      TESSERA_DISPATCH(a.device(), sum_quotient, a, b, y);
    }
  });
}

}  // namespace tessera
