#include "train/run/evaluate.h"

#include "core/device/decisions.h"
#include "layers/scores.h"
#include "train/data/loader.h"
#include "train/experiment.h"
#include "train/run/compute_dtype.h"
#include "train/tasks/builtin.h"

namespace tessera {

Evaluation evaluate(Module& model, Loader& loader, const Task& task, DType compute, TaskScore* score) {
  const NoGrad no_grad;
  const std::unique_ptr<TaskScore> own = score == nullptr ? task.score() : nullptr;
  TaskScore& taken = score == nullptr ? *own : *score;
  Evaluation result;
  std::int64_t weight = 0;
  loader.seek(0, 0);
  for (std::int64_t i = 0; i < loader.batches_per_epoch(); ++i) {
    const Batch batch = loader.next();
    const Var output = scores(model, batch.parts(), Context{}, compute);
    const BatchLoss loss = task.batch_loss(output, batch);
    result.loss += loss.mean * static_cast<double>(loss.weight);
    weight += loss.weight;
    taken.add(output.value(), batch, loss);
    result.samples += batch.samples();
  }
  if (weight > 0) result.loss /= static_cast<double>(weight);
  result.metrics = taken.values();
  return result;
}

Evaluation evaluate_split(Module& model, const Subset& split, const ExperimentConfig& config, TaskScore* score) {
  const DecisionScope fixed({});
  const Tf32Products products(takes_tf32(config));
  Loader loader(split, evaluation_options(config.data.batch, static_cast<int>(config.threads.loader), device_of(model)));
  return evaluate(model, loader, task_of(config.data), compute_dtype_of(config), score);
}

}  // namespace tessera
