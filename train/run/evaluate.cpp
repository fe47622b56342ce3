#include "train/run/evaluate.h"

#include <algorithm>
#include <cmath>

#include "core/device/decisions.h"
#include "core/ops/cross_entropy.h"
#include "layers/scores.h"
#include "train/data/loader.h"
#include "train/experiment.h"
#include "train/run/compute_dtype.h"

namespace tessera {
namespace {

std::int64_t predicted_class(const float* row, std::int64_t classes, std::int64_t label) {
  std::int64_t greatest = -1;
  for (std::int64_t i = 0; i < classes; ++i) {
    const bool nan = std::isnan(row[i]);
    if (nan && i != label) return i;
    if (!nan && (greatest < 0 || row[i] > row[greatest])) greatest = i;
  }
  return std::max<std::int64_t>(greatest, 0);  // of one class, whatever it is
}

std::vector<std::int64_t> predicted_classes(const Tensor& logits, const Tensor& labels) {
  const std::int64_t classes = logits.dim(1);
  std::vector<std::int64_t> predicted;
  const float* row = logits.data<float>();
  for (std::int64_t i = 0; i < logits.dim(0); ++i, row += classes) {
    predicted.push_back(predicted_class(row, classes, labels.data<std::int64_t>()[i]));
  }
  return predicted;
}

std::int64_t count_correct(const BatchResult& batch) {
  const std::int64_t* truth = batch.labels.data<std::int64_t>();
  std::int64_t correct = 0;
  for (const std::int64_t predicted : batch.predicted) correct += predicted == *truth++;
  return correct;
}

}  // namespace

Evaluation evaluate(Module& model, Loader& loader, DType compute, const std::function<void(const BatchResult&)>& on_batch) {
  const NoGrad no_grad;
  Evaluation result;
  loader.seek(0, 0);
  for (std::int64_t i = 0; i < loader.batches_per_epoch(); ++i) {
    const Batch batch = loader.next();
    const Var output = scores(model, batch.x, Context{}, compute);
    result.loss += cross_entropy(output, batch.y).value().item() * static_cast<double>(batch.x.dim(0));
    const Tensor logits = output.value().to(Device::cpu()).contiguous();
    const Tensor labels = batch.y.to(Device::cpu()).contiguous();
    const std::vector<std::int64_t> predicted = predicted_classes(logits, labels);
    const BatchResult said{logits, labels, predicted};
    result.correct += count_correct(said);
    result.samples += batch.x.dim(0);
    if (on_batch) on_batch(said);
  }
  if (result.samples > 0) result.loss /= static_cast<double>(result.samples);
  return result;
}

Evaluation evaluate_split(Module& model, const Subset& split, const Normalization& normalization, const ExperimentConfig& config,
                          const std::function<void(const BatchResult&)>& on_batch) {
  const DecisionScope fixed({});
  const Tf32Products products(takes_tf32(config));
  Loader loader(split,
                evaluation_options(config.data.batch, normalization, static_cast<int>(config.threads.loader), device_of(model)));
  return evaluate(model, loader, compute_dtype_of(config), on_batch);
}

}  // namespace tessera
