// What a network is trained for: its loss, the metrics that judge it, and what else `tessera eval` tells. The data block of an
// experiment file decides the task (task_of in train/tasks/builtin.h).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/autograd/var.h"
#include "core/nn/module.h"
#include "core/support/error.h"
#include "train/data/dataset.h"
#include "train/tasks/loss_config.h"
#include "train/tasks/metric.h"
#include "train/tasks/prediction.h"

namespace tessera {

// Task::loss of one batch, without label smoothing, and Task::loss_weight.
struct BatchLoss {
  double mean = 0;
  std::int64_t weight = 0;
};

// Takes in what a network answers, batch after batch of a split in its order.
class TaskScore {
 public:
  virtual ~TaskScore() = default;
  // `output`: the network's scores of the batch; both are where the network computed. `loss`: Task::batch_loss of the two.
  virtual void add(const Tensor& output, const Batch& batch, const BatchLoss& loss) = 0;
  // The task's metrics, in their order, over all samples so far; 0 before the first.
  virtual std::vector<double> values() const = 0;
};

// A score that gives its sums: the sums of batches, added in the split's order, are those of the split, to the last bit.
class SummedScore : public TaskScore {
 public:
  virtual std::vector<double> sums() const = 0;
  virtual void add_sums(std::span<const double> sums) = 0;  // of another score of the task
};

struct DetailOptions {
  bool predictions = false;  // keep a row per sample
  bool probabilities = false;  // with the probability of every answer
};

// A score that keeps more than the metrics: what the answers were.
class TaskDetails : public TaskScore {
 public:
  virtual std::string summary() const = 0;  // for people, of the whole split: metrics and what else fits a line
  virtual std::string text() const = 0;  // for people, below it
  virtual Value keys() const = 0;  // for programs: a map, in the order in which keys are shown
  virtual std::string predictions() const = 0;  // CSV, when asked for
  virtual std::string csv(std::string_view table) const = 0;  // one of Task::tables()
};

class Task {
 public:
  // A CSV file that `tessera eval --<name>` writes.
  struct Table {
    std::string_view name;
    std::string_view help;
  };

  virtual ~Task() = default;
  virtual std::string_view name() const = 0;
  virtual std::span<const Metric> metrics() const = 0;  // the first one chooses the best checkpoint
  virtual std::string_view throughput_unit() const = 0;  // "tok/s": what units per second are called
  // Units of one sample: 1 for an image, for text its tokens.
  virtual std::int64_t units_per_sample(const Dataset& data) const = 0;
  virtual std::span<const Table> tables() const = 0;

  // The mean loss of a batch, a scalar; f32 scores in, differentiable.
  virtual Var loss(const Var& output, const Batch& batch, const LossConfig& config) const = 0;
  // The number of terms that the loss is the mean of, so that batches add up to a split: samples, or the targets in them.
  virtual std::int64_t loss_weight(const Batch& batch) const { return batch.samples(); }
  // Whether the number of terms differs from sample to sample. The parts of a batch, micro-batches and shares of ranks, are
  // weighed by samples.
  virtual bool targets_vary() const { return false; }
  // Loss and weight of one batch in an evaluation. Waits for the device.
  BatchLoss batch_loss(const Var& output, const Batch& batch) const {
    return {loss(output, batch, {}).value().item(), loss_weight(batch)};
  }
  // `output`: the shape of the network's answer to one sample. Throws ConfigError where it does not fit the data.
  virtual void check_output(const Shape& output, const Dataset& data) const = 0;
  // Throws ConfigError where the network would read what the task asks for.
  virtual void check_network(Module&) const {}
  virtual std::unique_ptr<SummedScore> score() const = 0;
  // Its add() must get the batches of the split in the split's order.
  virtual std::unique_ptr<TaskDetails> details(const Subset& split, const DetailOptions& options) const = 0;

  // What a network says of samples without targets. `description`: what the data set says of itself (Dataset::description), which
  // may stand among other keys; `input` and `output`: shapes of one sample and of the answer to it. Throws ConfigError where
  // they do not fit. The default throws always: it is for a task that has nothing to say of a sample alone.
  virtual std::unique_ptr<Prediction> prediction(const Value& description, const Shape& input, const Shape& output) const;
};

inline std::unique_ptr<Prediction> Task::prediction(const Value&, const Shape&, const Shape&) const {
  throw ConfigError(str("the network learnt the task ", name(), ", which has no answer to a sample alone"));
}

}  // namespace tessera
