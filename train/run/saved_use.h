// What a run's network was trained for.
#pragma once

#include "train/experiment.h"
#include "train/run/network_file.h"

namespace tessera {

// Of the run's settings and a checkpoint's manifest: its task, its precision, its data's keys_of_export(), the clock's choices.
NetworkUse use_of_run(const ExperimentConfig& config, const Value& manifest);

}  // namespace tessera
