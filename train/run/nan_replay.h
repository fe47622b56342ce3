// After a NaN or Inf: the steps since the last good checkpoint once more, with every op checked, to name the first bad one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "train/run/run_state.h"
#include "train/run/stop.h"

namespace tessera {

// `state` stands where the replay begins: started or loaded. Runs until `until` steps of the run are done, or the first NaN or
// Inf, or a stop is asked for. Returns what is to be told, as one line:
//   training: stage dense, step 137 (lr 0.1): relu (layer2.0) forward made the first Inf: output f32 [2, 3] at [0, 1] is inf; its
//   inputs were finite, up to 3e+38 in magnitude
// When no NaN or Inf comes back it says so after `found`, which is what ended the run, and `why_none`. Throws what training
// throws beside NumericError. Writes nothing.
std::string name_first_bad_op(RunState& state, std::int64_t until, const std::string& found, const StopRequest& stop,
                              std::string_view why_none);

}  // namespace tessera
