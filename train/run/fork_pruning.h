// Forks inside a stage that prunes: whether the target can still be met.
#pragma once

#include "core/io/vfs.h"
#include "train/run/saved_point.h"

namespace tessera {

// Throws ConfigError naming the key where a fork from this point changes `prune.sparsity` of the stage under way so that its last
// pruning does not lie ahead, or so that no weight is below its target. The configs are resolved, and check_fork() takes them.
// Where they differ there, reads the checkpoint's network, and how much data there is.
void check_pruning_of_fork(Vfs& vfs, const SavedPoint& point, const Value& before, const Value& after);

}  // namespace tessera
