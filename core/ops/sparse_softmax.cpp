#include "core/ops/sparse_softmax.h"

#include <cmath>
#include <utility>

#include "core/device/dispatch.h"
#include "core/ops/operands.h"

namespace tessera {
namespace {

class SparseSoftmaxOp final : public Op {
 public:
  SparseSoftmaxOp(Tensor y, SparseWeightPtr pattern, double scale)
      : y_(std::move(y)), pattern_(std::move(pattern)), scale_(scale) {}
  std::string_view name() const override { return "sparse_softmax"; }
  Grads backward(const Tensor& grad_y, NeedsGrad) override {
    Tensor grad_x = Tensor::empty_like(y_);
    if (grad_x.numel() > 0) {
      TESSERA_DISPATCH(y_.device(), sparse_softmax_backward, y_, grad_y.contiguous(), pattern_->offsets(y_.device()), scale_,
                       grad_x);
    }
    return {std::move(grad_x)};
  }

 private:
  Tensor y_;
  SparseWeightPtr pattern_;
  double scale_;
};

}  // namespace

Var sparse_softmax(const Var& values, const SparseWeightPtr& pattern, double scale) {
  check_floating("sparse_softmax", values.value());
  TESSERA_CHECK(values.shape().rank() >= 1 && values.shape()[values.shape().rank() - 1] == pattern->count(), ShapeError,
                "sparse_softmax: values do not fit: they are ", values.shape(), ", the pattern keeps ", pattern->count(),
                " elements of ", pattern->shape(), "; needs [..., ", pattern->count(), "]");
  TESSERA_CHECK(std::isfinite(scale), ConfigError, "sparse_softmax: scale is ", scale, "; needs a finite number");
  Tensor y = Tensor::empty_like(values.value());
  if (y.numel() > 0) {
    TESSERA_DISPATCH(y.device(), sparse_softmax_forward, values.value().contiguous(), pattern->offsets(y.device()), scale, y);
  }
  return record(std::make_unique<SparseSoftmaxOp>(y, pattern, scale), {values}, y);
}

}  // namespace tessera
