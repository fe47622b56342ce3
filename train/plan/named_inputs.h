// Whether a data set has what the layers of a network take beside x.
#pragma once

#include "core/nn/module.h"
#include "train/data/dataset.h"

namespace tessera {

// Throws ConfigError naming the first module with a named input (Module::named_inputs) that is none of the data set's fields.
void check_named_inputs(Module& network, const Dataset& data);

}  // namespace tessera
