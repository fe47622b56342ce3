// Forks inside a stage that prunes: whether the target can still be met.
#pragma once

#include <cstdint>
#include <optional>

#include "core/io/vfs.h"
#include "train/experiment.h"
#include "train/run/saved_point.h"

namespace tessera {

// Steps of an epoch. The data are read when they are first asked for: one object serves configs that have the same.
class EpochLength {
 public:
  std::int64_t of(const ExperimentConfig& config);

 private:
  std::optional<std::int64_t> steps_;
};

// Throws ConfigError naming the key where a fork from this point changes `prune.sparsity` of the stage under way so that its last
// pruning does not lie ahead, or so that no weight is below its target. The configs are resolved, and check_fork() takes them.
// Where they differ there, reads the checkpoint's network, and asks for the length of an epoch.
void check_pruning_of_fork(Vfs& vfs, const SavedPoint& point, const Value& before, const Value& after, EpochLength& epoch);

}  // namespace tessera
