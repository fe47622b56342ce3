// A run as it is opened by commands that look at what was learnt: settings, a checkpoint, its data and its network.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "train/checkpoint/store.h"
#include "train/data/builtin.h"
#include "train/experiment.h"
#include "train/run/run_folder.h"

namespace tessera {

struct SavedRun {
  ExperimentConfig config;
  Checkpoint checkpoint;
  DataSplits data;
  std::unique_ptr<Module> model;  // with the weights that the run itself evaluated there, on the config's device
};

// `at` is a stage's end, a step, "best", or "" for the newest; `overrides` are key=value of what cannot change what was learnt.
// Sets the threads of the process. Throws ConfigError, beginning with `verb`, on a checkpoint that does not exist, on overrides
// of any other key, on data that is missing or not the run's; IoError on a checkpoint that is damaged, when it was asked for by
// name. A damaged newest one is passed over with a warning.
SavedRun open_saved_run(Vfs& vfs, const RunFolder& run, const std::string& at, std::span<const std::string> overrides,
                        std::string_view verb);

// "test", "val" or "train". Throws ConfigError for another name and for an empty split.
Subset split_of(const DataSplits& data, const std::string& name, std::string_view verb);

}  // namespace tessera
