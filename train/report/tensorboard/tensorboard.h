// Runs for TensorBoard: FOLDER/<name>/<n>/ for each of runs/<name>/<n>, with one event file of the numbers in metrics.jsonl and
// timing.jsonl as scalars, and of config.resolved.yaml as a text.
#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "core/io/vfs.h"

namespace tessera {

inline constexpr const char* kEventFileName = "events.out.tfevents.tessera";

// The tags are the keys of the files' numbers, "admm/rho" for `rho` of the lines that hold `admm`. The same files give the same
// bytes: the time of all events is that of status.json. Creates the folder, and replaces the event files of an earlier export,
// each atomically. Before it writes anything it throws ConfigError on a path that is no run's, a run that has logged no number,
// two runs of the same last two names, and a folder that holds anything but such exports; IoError as read_run_numbers() does.
void export_tensorboard(Vfs& vfs, std::span<const std::string> runs, const std::filesystem::path& folder);

}  // namespace tessera
