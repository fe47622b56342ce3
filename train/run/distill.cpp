#include "train/run/distill.h"

#include "core/ops/arithmetic.h"
#include "core/ops/reduce.h"
#include "core/ops/softmax.h"
#include "layers/scores.h"

namespace tessera {

Var Distill::loss(const Var& value, const Var& scores, std::span<const NamedTensor> parts) {
  const double cold = 1 / config_.temperature;
  Var logarithms, probabilities;  // of the teacher's softened scores
  {
    const NoGrad no_grad;
    const Var softened = mul_scalar(tessera::scores(teacher_, parts, Context{}, compute_), cold);
    logarithms = log_softmax(softened);
    probabilities = softmax(softened);
  }
  const Var student = log_softmax(mul_scalar(scores, cold));
  const Var divergence = sum(mul(probabilities, sub(logarithms, student)));
  const Tensor& answers = scores.value();
  const auto count = static_cast<double>(answers.numel() / answers.dim(-1));
  const double scale = config_.weight * config_.temperature * config_.temperature / count;
  return add(mul_scalar(value, 1 - config_.weight), mul_scalar(divergence, scale));
}

}  // namespace tessera
