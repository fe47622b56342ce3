// What a run says when a step fails: where it happened, and how to go on.
#pragma once

#include <string>

#include "core/support/error.h"
#include "train/run/run_context.h"

namespace tessera {

// `found`, a NaN or Inf, with the first op that made one: the steps since the last good checkpoint are replayed with every op
// checked. That writes nothing but lines of the log; an error of the replay is told, not thrown.
std::string explain_numeric_error(RunContext& run, const std::string& found);

// After an allocation failed: the micro-batch that fits. "" where nothing is known.
std::string smaller_step(RunContext& run, const OutOfMemoryError& found);

// "; step 12 was good: tessera fork runs/x/1 --at 12 CHANGE", or "" where SessionOptions::advise says so.
std::string way_on(const RunContext& run, const std::string& change);

}  // namespace tessera
