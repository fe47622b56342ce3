#include "core/ops/pad.h"

#include <vector>

#include "core/ops/operands.h"
#include "core/support/error.h"

namespace tessera {
namespace {

using Padding = std::vector<std::pair<std::int64_t, std::int64_t>>;

// The part of the padded tensor that holds x.
Tensor inside(const Tensor& y, const Padding& padding) {
  Tensor part = y;
  for (int axis = 0; axis < y.rank(); ++axis) {
    const auto& [before, after] = padding[static_cast<std::size_t>(axis)];
    part = part.slice(axis, before, y.shape()[axis] - after);
  }
  return part;
}

class PadOp final : public Op {
 public:
  explicit PadOp(Padding padding) : padding_(std::move(padding)) {}
  std::string_view name() const override { return "pad"; }
  Grads backward(const Tensor& grad_y, NeedsGrad) override { return {inside(grad_y, padding_)}; }

 private:
  Padding padding_;
};

}  // namespace

Var pad(const Var& x, std::span<const std::pair<std::int64_t, std::int64_t>> padding, double value) {
  check_floating("pad", x.value());
  Shape shape = x.shape();
  TESSERA_CHECK(static_cast<int>(padding.size()) == shape.rank(), ShapeError, "pad: ", padding.size(), " pairs for x ", shape,
                "; needs one per axis");
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const auto& [before, after] = padding[static_cast<std::size_t>(axis)];
    TESSERA_CHECK(before >= 0 && after >= 0, ShapeError, "pad: padding of axis ", axis, " is ", before, " and ", after,
                  "; needs sizes of at least 0");
    shape.set(axis, shape[axis] + before + after);
  }
  Padding sizes(padding.begin(), padding.end());
  Tensor y = Tensor::full(shape, value, x.dtype(), x.device());
  inside(y, sizes).copy_from(x.value());
  return record(std::make_unique<PadOp>(std::move(sizes)), {x}, y);
}

}  // namespace tessera
