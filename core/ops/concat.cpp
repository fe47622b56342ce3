#include "core/ops/concat.h"

#include <utility>
#include <vector>

#include "core/ops/operands.h"
#include "core/support/error.h"

namespace tessera {
namespace {

class ConcatOp final : public Op {
 public:
  ConcatOp(int axis, std::vector<std::int64_t> sizes) : axis_(axis), sizes_(std::move(sizes)) {}
  std::string_view name() const override { return "concat"; }
  Grads backward(const Tensor& grad_y, NeedsGrad needs) override {
    Grads grads(sizes_.size());
    std::int64_t begin = 0;
    for (std::size_t i = 0; i < sizes_.size(); ++i) {
      if (needs[static_cast<int>(i)]) grads[i] = grad_y.slice(axis_, begin, begin + sizes_[i]);
      begin += sizes_[i];
    }
    return grads;
  }

 private:
  int axis_;
  std::vector<std::int64_t> sizes_;
};

}  // namespace

Var concat(std::span<const Var> inputs, int axis) {
  TESSERA_CHECK(!inputs.empty(), ShapeError, "concat: no inputs; needs at least 1");
  Shape shape = inputs[0].shape();
  const int at = normalize_axis(axis, shape.rank(), "concat");
  check_floating("concat", inputs[0].value());
  std::vector<std::int64_t> sizes;
  std::int64_t total = 0;
  for (const Var& input : inputs) {
    check_operands("concat", "first input", inputs[0].value(), "another", input.value());
    Shape other = input.shape();
    TESSERA_CHECK(other.rank() == shape.rank(), ShapeError, "concat: ranks differ: first input is ", inputs[0].shape(),
                  ", another is ", other);
    sizes.push_back(other[at]);
    total += other[at];
    other.set(at, shape[at]);
    TESSERA_CHECK(other == shape, ShapeError, "concat: shapes differ beside axis ", at, ": first input is ", inputs[0].shape(),
                  ", another is ", input.shape());
  }
  shape.set(at, total);
  Tensor y = Tensor::empty(shape, inputs[0].dtype(), inputs[0].device());
  std::int64_t begin = 0;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    y.slice(at, begin, begin + sizes[i]).copy_from(inputs[i].value());
    begin += sizes[i];
  }
  return record(std::make_unique<ConcatOp>(at, std::move(sizes)), inputs, y);
}

}  // namespace tessera
