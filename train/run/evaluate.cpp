#include "train/run/evaluate.h"

#include <cstring>
#include <span>

#include "core/device/decisions.h"
#include "layers/scores.h"
#include "train/data/loader.h"
#include "train/experiment.h"
#include "train/run/compute_dtype.h"
#include "train/tasks/builtin.h"

namespace tessera {
namespace {

// What a batch adds to an evaluation: its samples, the weighted sum of its loss, the weight, and the sums of its score.
using BatchSums = std::vector<double>;

BatchSums sums_of(Module& model, const Batch& batch, const Task& task, DType compute) {
  const std::unique_ptr<SummedScore> score = task.score();
  const Var output = scores(model, batch.parts(), Context{}, compute);
  const BatchLoss loss = task.batch_loss(output, batch);
  score->add(output.value(), batch, loss);
  BatchSums sums{static_cast<double>(batch.samples()), loss.mean * static_cast<double>(loss.weight),
                 static_cast<double>(loss.weight)};
  const std::vector<double> more = score->sums();
  sums.insert(sums.end(), more.begin(), more.end());
  return sums;
}

// Batches of a rank without the last one, which may be smaller and is rank 0's. Rank 0 has a whole one if any rank has.
std::int64_t whole_batches_of(int rank, int ranks, std::int64_t whole) {
  const std::int64_t share = whole / ranks, rest = whole % ranks;
  if (share == 0) return rank < rest ? 1 : 0;
  return share + (rank >= 1 && rank <= rest ? 1 : 0);
}

// The batches of a rank, in the order in which it takes them. Rank 0 starts with the last batch.
std::vector<std::int64_t> batches_of(int rank, int ranks, std::int64_t batches) {
  const std::int64_t whole = batches - 1;
  std::int64_t begin = 0;
  for (int r = 0; r < rank; ++r) begin += whole_batches_of(r, ranks, whole);
  std::vector<std::int64_t> mine;
  if (rank == 0) mine.push_back(whole);
  const std::int64_t end = begin + whole_batches_of(rank, ranks, whole);
  for (std::int64_t i = begin; i < end; ++i) mine.push_back(i);
  return mine;
}

Evaluation added(const std::vector<BatchSums>& batches, const Task& task) {
  const std::unique_ptr<SummedScore> score = task.score();
  Evaluation result;
  std::int64_t weight = 0;
  for (const BatchSums& sums : batches) {
    result.samples += static_cast<std::int64_t>(sums[0]);
    result.loss += sums[1];
    weight += static_cast<std::int64_t>(sums[2]);
    score->add_sums(std::span(sums).subspan(3));
  }
  if (weight > 0) result.loss /= static_cast<double>(weight);
  result.metrics = score->values();
  return result;
}

}  // namespace

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

Evaluation evaluate_together(Communicator& ranks, Module& model, Loader& loader, const Task& task, DType compute,
                             const std::function<void()>& own_done) {
  if (ranks.size() == 1) {
    const Evaluation result = evaluate(model, loader, task, compute);
    own_done();
    return result;
  }
  const NoGrad no_grad;
  const std::int64_t batches = loader.batches_per_epoch();
  std::string mine;
  for (const std::int64_t i : batches_of(ranks.rank(), ranks.size(), batches)) {
    if (loader.epoch() != 0 || loader.batch() != i) loader.seek(0, i);
    const BatchSums sums = sums_of(model, loader.next(), task, compute);
    mine.append(reinterpret_cast<const char*>(sums.data()), sums.size() * sizeof(double));
  }
  own_done();
  const std::vector<std::string> all = ranks.all_gather(mine);
  const std::size_t width = 3 + task.score()->sums().size();
  std::vector<BatchSums> in_order(static_cast<std::size_t>(batches), BatchSums(width));
  for (int rank = 0; rank < ranks.size(); ++rank) {
    const char* at = all[static_cast<std::size_t>(rank)].data();
    for (const std::int64_t i : batches_of(rank, ranks.size(), batches)) {
      std::memcpy(in_order[static_cast<std::size_t>(i)].data(), at, width * sizeof(double));
      at += width * sizeof(double);
    }
  }
  return added(in_order, task);
}

Evaluation evaluate_split(Module& model, const Subset& split, const ExperimentConfig& config, TaskScore* score) {
  const DecisionScope fixed({});
  const Tf32Products products(takes_tf32(config));
  Loader loader(split, evaluation_options(config.data.batch, static_cast<int>(config.threads.loader), device_of(model)));
  return evaluate(model, loader, task_of(config.data), compute_dtype_of(config), score);
}

}  // namespace tessera
