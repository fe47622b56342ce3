// The passes of a run's stages.
#pragma once

#include "train/run/run_context.h"

namespace tessera {

// Runs the stage's passes unless they have run, and records and tells what they did. Throws Stopped where a stop is asked for
// before one or before a timing: the pass begins again later, with the times that it had recorded.
void prepare_stage(RunContext& run);

}  // namespace tessera
