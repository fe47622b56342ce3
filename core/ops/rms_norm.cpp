#include "core/ops/rms_norm.h"

#include "core/device/dispatch.h"
#include "core/ops/dense_operands.h"
#include "core/ops/layer_norm.h"

namespace tessera {
namespace {

class RmsNormOp final : public Op {
 public:
  RmsNormOp(Tensor x, Tensor gamma, Tensor inv_rms) : x_(std::move(x)), gamma_(std::move(gamma)), inv_rms_(std::move(inv_rms)) {}
  std::string_view name() const override { return "rms_norm"; }

  Grads backward(const Tensor& grad_y, NeedsGrad needs) override {
    Grads grads(2);
    if (needs[0]) grads[0] = Tensor::empty_like(x_);
    if (needs[1]) grads[1] = Tensor::empty_like(gamma_);
    const Tensor grad_x = needs[0] ? as_rows(grads[0]) : Tensor();
    TESSERA_DISPATCH(x_.device(), layer_norm_backward, as_rows(x_), as_rows(grad_y), gamma_, Tensor(), inv_rms_, grad_x, grads[1],
                     Tensor());
    return grads;
  }

 private:
  Tensor x_;
  Tensor gamma_;
  Tensor inv_rms_;
};

}  // namespace

Var rms_norm(const Var& x, const Var& gamma, double eps) {
  TESSERA_CHECK(x.shape().rank() >= 1, ShapeError, "rms_norm: x is a scalar; needs at least 1 dimension");
  TESSERA_CHECK(gamma.shape() == Shape{x.value().dim(-1)}, ShapeError, "rms_norm: gamma does not fit: x is ", x.shape(),
                ", gamma is ", gamma.shape(), "; gamma must be [x.dim(-1)]");
  check_parameters("rms_norm", {"x", x.value()}, {{"gamma", gamma.value()}});
  const Tensor input = x.value().contiguous();
  const Tensor scale = gamma.value().contiguous();
  const Tensor rows = as_rows(input);
  Tensor y = Tensor::empty_like(input);
  const Tensor inv_rms = Tensor::empty({rows.dim(0)}, scale.dtype(), input.device());
  TESSERA_DISPATCH(y.device(), layer_norm_forward, rows, scale, Tensor(), eps, as_rows(y), Tensor(), inv_rms);
  return record(std::make_unique<RmsNormOp>(input, scale, inv_rms), {x, gamma}, std::move(y));
}

}  // namespace tessera
