// What can be wrong with an experiment beyond its keys: found before the first step, not after the first stage.
#pragma once

#include <vector>

#include "core/config/read.h"
#include "core/device/decisions.h"
#include "train/experiment.h"

namespace tessera {

// Loads the data, builds the network, reads the weights that it starts from and tries every stage on it: data files, layer list,
// weights that do not fit, number of classes, lengths, selectors and ranks (chosen from the initial weights; what they can reach
// does not depend on them). Throws ConfigError with one line per problem, each "file:line:col: path: message" where the file says
// it. Returns the data, for callers that go on with it.
// `given` is what a decisions file of another run says, where the experiment is about to run: `keep: faster` under
// `deterministic: true` needs one.
DataSplits check_experiment(const Experiment& experiment, const DecisionMap* given = nullptr);
// The same problems one by one, in the order of the file; none when the experiment can run.
std::vector<ConfigProblem> experiment_problems(const Experiment& experiment, const DecisionMap* given = nullptr);

}  // namespace tessera
