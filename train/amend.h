// Changes to a run that has begun: the few that resume may take, and fork for all others.
#pragma once

#include <span>
#include <string>

#include "core/io/vfs.h"
#include "train/run_folder.h"

namespace tessera {

// Applies overrides to the run's resolved config when none can alter the past: length of stages not begun, checkpointing, report,
// loader threads. Anything else throws ConfigError naming the key and the fork command to use instead. Appends to the run's train.log.
void amend_run(Vfs& vfs, const RunFolder& folder, std::span<const std::string> overrides);

// A new run folder that starts from a checkpoint of `parent`: the last one of the stage named `at`, or the one of global step `at`.
RunFolder fork_run(Vfs& vfs, const RunFolder& parent, const std::string& at, std::span<const std::string> overrides,
                   const std::string& runs);

}  // namespace tessera
