// Accuracy and loss over a whole split: every sample once, weighted exactly.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "core/nn/module.h"

namespace tessera {

class Loader;
struct ExperimentConfig;
struct Normalization;
struct Subset;

struct Evaluation {
  std::int64_t samples = 0;
  std::int64_t correct = 0;
  double loss = 0;  // mean cross-entropy per sample, without label smoothing
  double accuracy() const { return samples > 0 ? static_cast<double>(correct) / static_cast<double>(samples) : 0.0; }
};

// What the network said of one batch: logits f32 [n, classes] and labels i64 [n] on the host, and the class predicted for each:
// that of the greatest logit, of equal ones the first. A NaN is ahead of every number, that of the true class behind them all, so
// that no sample is right by one.
struct BatchResult {
  const Tensor& logits;
  const Tensor& labels;
  const std::vector<std::int64_t>& predicted;
};

// Runs the model in inference mode, without recording, over one epoch of the loader, in the dtype `compute`. `on_batch`, where
// given, is told each batch.
Evaluation evaluate(Module& model, Loader& loader, DType compute, const std::function<void(const BatchResult&)>& on_batch = {});

// The figure that tables and `tessera eval` give: samples in the split's order, batches and loader threads as the config says, no
// choice by a clock, so that it repeats; in the config's precision.
Evaluation evaluate_split(Module& model, const Subset& split, const Normalization& normalization, const ExperimentConfig& config,
                          const std::function<void(const BatchResult&)>& on_batch = {});

}  // namespace tessera
