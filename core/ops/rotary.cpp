#include "core/ops/rotary.h"

#include <cmath>
#include <utility>

#include "core/device/dispatch.h"
#include "core/device/precision.h"
#include "core/ops/operands.h"

namespace tessera {
namespace {

class RotaryOp final : public Op {
 public:
  RotaryOp(Tensor table, std::int64_t heads) : table_(std::move(table)), heads_(heads) {}
  std::string_view name() const override { return "rotary"; }
  bool writes_over_grad() const override { return true; }
  Grads backward(const Tensor& grad_y, NeedsGrad) override {
    Tensor grad_x = grad_y.sole_owner() ? grad_y : Tensor::empty_like(grad_y);
    TESSERA_DISPATCH(grad_y.device(), rotary_turn, grad_y, table_, heads_, true, grad_x);
    return {std::move(grad_x)};
  }

 private:
  Tensor table_;
  std::int64_t heads_;
};

void check(const Tensor& x, const RotaryOptions& options) {
  check_floating("rotary", x);
  TESSERA_CHECK(x.rank() == 4 && x.dim(3) % 2 == 0, ShapeError, "rotary: x is ", x.shape(),
                "; needs [batch, positions, heads, width] with an even width");
  TESSERA_CHECK(options.heads >= 1 && options.heads <= x.dim(2), ConfigError, "rotary: heads is ", options.heads, ", x is ",
                x.shape(), "; needs 1 to ", x.dim(2));
  TESSERA_CHECK(options.offset >= 0, ConfigError, "rotary: offset is ", options.offset, "; needs 0 or more");
  TESSERA_CHECK(options.base > 0 && std::isfinite(options.base), ConfigError, "rotary: base is ", options.base,
                "; needs a finite number above 0");
}

}  // namespace

Var rotary(const Var& x, const RotaryOptions& options) {
  check(x.value(), options);
  const Tensor input = x.value().contiguous();
  const Tensor table = Tensor::empty({2, input.dim(1), input.dim(3) / 2}, parameter_dtype(input.dtype()), input.device());
  Tensor y = Tensor::empty_like(input);
  TESSERA_DISPATCH(x.device(), rotary_table, options.offset, options.base, table);
  TESSERA_DISPATCH(x.device(), rotary_turn, input, table, options.heads, false, y);
  return record(std::make_unique<RotaryOp>(table, options.heads), {x}, y);
}

}  // namespace tessera
