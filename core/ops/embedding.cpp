#include "core/ops/embedding.h"

#include <utility>

#include "core/device/dispatch.h"
#include "core/ops/operands.h"
#include "core/support/profile.h"

namespace tessera {
namespace {

class EmbeddingOp final : public Op {
 public:
  EmbeddingOp(Tensor ids, const Shape& weight) : ids_(std::move(ids)), weight_(weight) {}
  std::string_view name() const override { return "embedding"; }
  Grads backward(const Tensor& grad_y, NeedsGrad) override {
    Tensor grad_weight = Tensor::empty(weight_, grad_y.dtype(), grad_y.device());
    TESSERA_DISPATCH(grad_y.device(), embedding_backward, ids_, grad_y, grad_weight);
    return {std::move(grad_weight)};
  }
  bool add_backward(const Tensor& grad_y, const Tensor& sum) override {
    if (!sum.device().is_cpu()) return false;
    const KernelTimer timer;
    cpu::embedding_add(ids_, grad_y, sum);
    return true;
  }

 private:
  Tensor ids_;
  Shape weight_;
};

}  // namespace

Var embedding(const Tensor& ids, const Var& weight) {
  check_real("embedding", weight.value());
  check_companion("embedding", "weight", weight.value(), "ids", ids, DType::i64);
  TESSERA_CHECK(weight.shape().rank() == 2, ShapeError, "embedding: weight is ", weight.shape(), "; needs [rows, width]");
  const Tensor numbers = ids.contiguous();
  Tensor y = Tensor::empty(ids.shape().append(weight.shape()[1]), weight.dtype(), weight.device());
  TESSERA_DISPATCH(weight.device(), embedding_forward, numbers, weight.value().contiguous(), y);
  return record(std::make_unique<EmbeddingOp>(numbers, weight.shape()), {weight}, y);
}

}  // namespace tessera
