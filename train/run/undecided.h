// `deterministic: true` reads no clock: what would ask one has to be among recorded choices.
#pragma once

#include <cstddef>
#include <vector>

#include "compress/ranks/block_problem.h"
#include "core/device/decisions.h"
#include "train/experiment.h"

namespace tessera {

// What the stages from `first` on would ask a clock and `given` does not hold, by the path of its key in the experiment:
// "stages[1].factorise.keep". Empty unless the run is deterministic.
std::vector<BlockProblem> undecided_choices(const ExperimentConfig& config, const DecisionMap& given, std::size_t first = 0);

}  // namespace tessera
