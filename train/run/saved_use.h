// What a run's network was trained for.
#pragma once

#include "core/device/decisions.h"
#include "train/experiment.h"
#include "train/run/network_file.h"

namespace tessera {

// From the run's settings and a checkpoint's manifest: its task, its precision, its data's keys_of_export(), the clock's
// choices.
NetworkUse use_of_run(const ExperimentConfig& config, const Value& manifest);

// For a checkpoint outside of any run: its manifest names no task and no precision.
NetworkUse use_of_checkpoint(const Value& manifest);

// The clock's choices; none where it tells none. Throws ConfigError.
DecisionMap decisions_of(const NetworkUse& use);

}  // namespace tessera
