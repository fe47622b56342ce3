// What can be wrong with an experiment beyond its keys: found before the first step, not after the first stage.
#pragma once

#include <optional>
#include <vector>

#include "core/config/read.h"
#include "core/device/decisions.h"
#include "train/experiment.h"
#include "train/run/run_inputs.h"

namespace tessera {

// Loads the data, builds the network, reads the weights that it starts from and tries every stage on it: data files, layer list,
// weights that do not fit, the network's output, lengths, selectors and ranks (chosen from the initial weights; what they can
// reach does not depend on them). Throws ConfigError with one line per problem, each "file:line:col: path: message" where the
// file says it. Returns what was read and built, for callers that go on with it.
// `given` is what a decisions file of another run says, where the experiment is about to run: `keep: faster` under
// `deterministic: true` needs one.
RunInputs check_experiment(const Experiment& experiment, const DecisionMap* given = nullptr);
// The same for callers that want each problem by itself: nothing when there are any, which are appended in the order of the file.
std::optional<RunInputs> check_experiment(const Experiment& experiment, std::vector<ConfigProblem>& problems,
                                          const DecisionMap* given = nullptr);

}  // namespace tessera
