// What a fresh run begins from: read once, by whoever checks the experiment, and handed on.
#pragma once

#include "train/data/builtin.h"
#include "train/experiment.h"
#include "train/run/import_weights.h"

namespace tessera {

struct RunInputs {
  DataSplits data;
  InitialModel initial;  // on the host
};

InitialModel initial_model(Vfs& vfs, const ExperimentConfig& config, const DataSplits& data);
RunInputs load_inputs(Vfs& vfs, const ExperimentConfig& config);

}  // namespace tessera
