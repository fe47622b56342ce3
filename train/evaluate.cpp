#include "train/evaluate.h"

#include <algorithm>

#include "core/ops/cross_entropy.h"
#include "train/data/loader.h"

namespace tessera {
namespace {

std::int64_t count_correct(const Tensor& logits, const Tensor& labels) {
  const Tensor host = logits.to(Device::cpu()).contiguous();
  const Tensor truth = labels.to(Device::cpu()).contiguous();
  const std::int64_t classes = host.dim(1);
  const float* row = host.data<float>();
  std::int64_t correct = 0;
  for (std::int64_t i = 0; i < host.dim(0); ++i, row += classes) {
    correct += std::max_element(row, row + classes) - row == truth.data<std::int64_t>()[i];
  }
  return correct;
}

}  // namespace

Evaluation evaluate(Module& model, Loader& loader) {
  const NoGrad no_grad;
  Evaluation result;
  loader.seek(0, 0);
  for (std::int64_t i = 0; i < loader.batches_per_epoch(); ++i) {
    const Batch batch = loader.next();
    const Var logits = model(Var(batch.x), Context{});
    result.loss += cross_entropy(logits, batch.y).value().item() * static_cast<double>(batch.x.dim(0));
    result.correct += count_correct(logits.value(), batch.y);
    result.samples += batch.x.dim(0);
  }
  if (result.samples > 0) result.loss /= static_cast<double>(result.samples);
  return result;
}

}  // namespace tessera
