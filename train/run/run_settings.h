// What a run was trained with, for verbs that look at what was learnt.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "train/experiment.h"
#include "train/run/run_folder.h"

namespace tessera {

// The run's own, with `overrides` (key=value) of the keys in `allowed`. Throws ConfigError, beginning with `verb`, on any other
// key: it could change what was learnt.
ExperimentConfig settings_of(const RunFolder& run, std::span<const std::string> overrides,
                             std::span<const std::string_view> allowed, std::string_view verb);

// Shape of one sample that a checkpoint's network takes, from its manifest.
Shape input_of(const Value& manifest);

}  // namespace tessera
