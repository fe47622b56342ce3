// Loss and metrics over a whole split: every sample once, weighted exactly.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "core/comm/communicator.h"
#include "core/nn/module.h"

namespace tessera {

class Loader;
class Task;
class TaskScore;
struct ExperimentConfig;
struct Subset;

struct Evaluation {
  std::int64_t samples = 0;
  double loss = 0;  // mean of the task's loss over what it is the mean of (Task::loss_weight), without label smoothing
  std::vector<double> metrics;  // of the task, in its order

  double deciding() const { return metrics.front(); }  // the one that chooses the best checkpoint
};

// Runs the model in inference mode, without recording, over one epoch of the loader, in the dtype `compute`. Metrics are those of
// `score`, a fresh one of the task, which the caller may give to read more of it.
Evaluation evaluate(Module& model, Loader& loader, const Task& task, DType compute, TaskScore* score = nullptr);

// The same by all ranks, which call it alike: each takes some of the batches, and all come to the bytes of one process. Rank 0
// takes the last batch, which may be smaller, and also a whole one where any other rank has one. The others ask rank 0 for the
// choices of a clock, so rank 0 must compute every batch size that they compute. `own_done` is called when the rank's own
// batches are done, before the ranks tell each other.
Evaluation evaluate_together(Communicator& ranks, Module& model, Loader& loader, const Task& task, DType compute,
                             const std::function<void()>& own_done);

// The figure that tables and `tessera eval` give: samples in the split's order, batches and loader threads as the config says, no
// choice by a clock, so that it repeats; the task of the config's data set, in the config's precision.
Evaluation evaluate_split(Module& model, const Subset& split, const ExperimentConfig& config, TaskScore* score = nullptr);

}  // namespace tessera
