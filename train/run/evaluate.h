// Loss and metrics over a whole split: every sample once, weighted exactly.
#pragma once

#include <cstdint>
#include <vector>

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

// The figure that tables and `tessera eval` give: samples in the split's order, batches and loader threads as the config says, no
// choice by a clock, so that it repeats; the task of the config's data set, in the config's precision.
Evaluation evaluate_split(Module& model, const Subset& split, const ExperimentConfig& config, TaskScore* score = nullptr);

}  // namespace tessera
