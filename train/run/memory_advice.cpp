#include "train/run/memory_advice.h"

#include "core/support/error.h"

namespace tessera {

std::optional<std::int64_t> largest_micro_batch(Module& model, const ExperimentConfig& config, const TrainingConfig& training,
                                                const DataSplits& data, std::int64_t capacity, std::span<const MakeHook> hooks,
                                                std::int64_t teachers) {
  const std::int64_t batch = config.data.batch;
  for (std::int64_t micro = training.micro_batch.value_or(batch) - 1; micro >= 1; --micro) {
    if (batch % micro != 0) continue;
    TrainingConfig smaller = training;
    smaller.micro_batch = micro;
    try {
      if (plan_memory(model, config, smaller, data, hooks, teachers).peak() <= capacity) return micro;
    } catch (const OutOfMemoryError&) {
    }
  }
  return {};
}

}  // namespace tessera
