#include "core/ops/cross_entropy.h"

#include <utility>

#include "core/device/dispatch.h"
#include "core/ops/operands.h"

namespace tessera {
namespace {

class CrossEntropyOp final : public Op {
 public:
  CrossEntropyOp(Tensor logits, Tensor row_sums, Tensor labels, const CrossEntropyOptions& options)
      : logits_(std::move(logits)), row_sums_(std::move(row_sums)), labels_(std::move(labels)), options_(options) {}
  std::string_view name() const override { return "cross_entropy"; }
  Grads backward(const Tensor& grad_y, NeedsGrad) override {
    Tensor grad_logits = Tensor::empty_like(logits_);
    TESSERA_DISPATCH(logits_.device(), cross_entropy_backward, grad_y, logits_, row_sums_, labels_, options_, grad_logits);
    return {std::move(grad_logits)};
  }

 private:
  Tensor logits_;
  Tensor row_sums_;
  Tensor labels_;
  CrossEntropyOptions options_;
};

}  // namespace

Var cross_entropy(const Var& logits, const Tensor& labels, const CrossEntropyOptions& options) {
  check_real("cross_entropy", logits.value());
  check_companion("cross_entropy", "logits", logits.value(), "labels", labels, DType::i64);
  TESSERA_CHECK(logits.shape().rank() == 2 && labels.rank() == 1 && labels.dim(0) == logits.shape()[0], ShapeError,
                "cross_entropy: shapes do not fit: logits is ", logits.shape(), ", labels is ", labels.shape(),
                "; needs [n, classes] and [n]");
  TESSERA_CHECK(logits.shape()[1] > 0, ShapeError, "cross_entropy: no classes: logits is ", logits.shape());
  TESSERA_CHECK(options.label_smoothing >= 0 && options.label_smoothing < 1, ConfigError, "cross_entropy: label_smoothing is ",
                options.label_smoothing, "; needs 0 <= label_smoothing < 1");
  const Tensor input = logits.value().contiguous();
  const Tensor targets = labels.contiguous();
  const Tensor row_sums = Tensor::empty({2, input.dim(0)}, input.dtype(), input.device());
  Tensor loss = Tensor::empty({}, input.dtype(), input.device());
  TESSERA_DISPATCH(input.device(), cross_entropy_forward, input, targets, options, row_sums, loss);
  return record(std::make_unique<CrossEntropyOp>(input, row_sums, targets, options), {logits}, loss);
}

}  // namespace tessera
