// `deterministic: true` reads no clock: what would ask one has to be among recorded choices.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "compress/ranks/block_problem.h"
#include "core/device/decisions.h"
#include "core/nn/module.h"
#include "train/experiment.h"

namespace tessera {

// What the stages from `first` on would ask a clock and `given` does not hold, by the path of its key in the experiment:
// "stages[1].factorise.keep". Empty unless the run is deterministic.
std::vector<BlockProblem> undecided_choices(const ExperimentConfig& config, const DecisionMap& given, std::size_t first = 0);

// The same of each layer that the first pass of this stage would have a clock judge. `load` gives the network as that pass will
// find it; it is called only where there is such a pass. Passes whose ranks come from timings or from batches of the data are
// left out.
std::vector<BlockProblem> undecided_layers(const ExperimentConfig& config, const DecisionMap& given, std::size_t stage,
                                           const std::function<std::unique_ptr<Module>()>& load);

}  // namespace tessera
