// What to do when a training step does not fit into memory.
#pragma once

#include <cstdint>
#include <optional>

#include "core/nn/module.h"
#include "train/run/memory_plan.h"

namespace tessera {

// The largest divisor of the batch, below the micro-batch in use, whose planned peak is at most `capacity` bytes. Empty when no
// smaller one fits. Takes a few steps of a copy of the model for each size tried, which may run out of memory themselves: a size
// whose steps do is taken for one that does not fit.
std::optional<std::int64_t> largest_micro_batch(Module& model, const ExperimentConfig& config, const TrainingConfig& training,
                                                const DataSplits& data, std::int64_t capacity,
                                                std::span<const MakeHook> hooks = {}, std::int64_t teachers = 0);

}  // namespace tessera
