// Whether a data set has what a network reads.
#pragma once

#include "core/nn/module.h"
#include "train/data/dataset.h"

namespace tessera {

// Throws ConfigError where the first field is real numbers and the network reads whole ones, or the other way round, or numbers
// that it has no place for (Module::input_limit).
void check_inputs(const Module& network, const Dataset& data);

}  // namespace tessera
