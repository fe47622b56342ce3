// A new run from a checkpoint of another, with changes that resume may not take.
#pragma once

#include <span>
#include <string>

#include "core/io/vfs.h"
#include "train/run/run_folder.h"

namespace tessera {

struct ExperimentConfig;

// A new run folder that starts from a checkpoint of `parent`: the last one of the stage named `at`, or the one of global step
// `at`. It also receives the ends of earlier stages, which the table compares with. A training key of the top level
// (training_keys()) is set in every stage that is not over at the checkpoint. Throws ConfigError, before any folder is made, on
// changes that the checkpoint cannot go on with: network, seed, data, stages that are over, and inside a stage whatever its saved
// state depends on, or a schedule of pruning that misses its target from there; and where a stage behind it would time a network
// in decode that cannot decode, or on longer sequences than it takes.
RunFolder fork_run(Vfs& vfs, const RunFolder& parent, const std::string& at, std::span<const std::string> overrides,
                   const std::string& runs);
// The same toward a whole config, for which settle_for_run() has been called.
RunFolder fork_run(Vfs& vfs, const RunFolder& parent, const std::string& at, const ExperimentConfig& config,
                   const std::string& runs);

}  // namespace tessera
