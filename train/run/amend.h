// Changes to a run that has begun: the few that resume may take. All others need a fork (train/run/fork.h).
#pragma once

#include <span>
#include <string>

#include "core/comm/communicator.h"
#include "core/io/vfs.h"
#include "train/run/run_folder.h"

namespace tessera {

// Applies overrides to the run's resolved config when none can alter the past: length of stages not begun, checkpointing, report,
// threads, device, data.root, and data.on_bad_image to skip, which leaves out the images that cannot be decoded now and keeps
// their places (train/run/broken_images.h). Anything else throws ConfigError naming the key and a fork command that takes it.
// Holds the run's lock meanwhile: IoError, and nothing changed, while the run is being trained or where its other images changed.
// Appends to the run's train.log. With several `ranks`, rank 0 calls it while the others follow it (follow_rank_0()); what
// several ranks cannot do is refused, too.
void amend_run(Vfs& vfs, const RunFolder& folder, std::span<const std::string> overrides, Communicator& ranks = one_process());

}  // namespace tessera
