// decisions.json of a run: what a clock has chosen in it, {"version": 1, "decisions": {"conv2d.forward n128 …": "winograd", …}}.
// Written before a choice is used, so that a run that is resumed, or replayed by train --decisions, takes the same ones.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>

#include "core/config/value.h"
#include "core/device/decisions.h"
#include "core/io/vfs.h"

namespace tessera {

Value to_value(const DecisionMap& decisions);
DecisionMap decisions_from(const Value& value);  // throws ConfigError
DecisionMap recorded_decisions(const Value& manifest);  // of a checkpoint, empty where it has none

// Throws ConfigError naming the file when it is not a decisions file, IoError when it cannot be read.
DecisionMap read_decisions(Vfs& vfs, const std::filesystem::path& path);

void write_decisions(Vfs& vfs, const std::filesystem::path& path, const DecisionMap& decisions);

// What a run that is resumed knows: its file, which may hold more than its checkpoint, and what the checkpoint holds. A file that
// cannot be read is warned about: what it alone knew is measured again, and bytes may differ.
DecisionMap surviving_decisions(Vfs& vfs, const std::filesystem::path& path, DecisionMap saved);

// Writes `known` to `path`, and until the result is destroyed decides as they say; a choice they lack is measured, unless
// `deterministic`, added to the file, and told to `told`, before it is used. `vfs` must outlive the result.
using MeasuredDecision = std::function<void(const std::string& key, const std::string& choice)>;
std::unique_ptr<DecisionScope> decide_for_run(Vfs& vfs, const std::filesystem::path& path, DecisionMap known, bool deterministic,
                                              const MeasuredDecision& told = {});

}  // namespace tessera
