// The sparse layers that masked ones become.
#pragma once

#include <memory>
#include <string>

#include "core/nn/module.h"

namespace tessera {

// The weight of a layer that has a sparse form, a linear one or a convolution; null for every other module.
const Parameter* sparse_candidate(const Module& module);

// Why a candidate cannot be sparse: "has 4 groups; sparse kernels need 1". "" where it can.
std::string why_not_sparse(const Module& module);

// The layer that keeps what the mask keeps, with the candidate's values, bias and trainability.
std::unique_ptr<Module> sparse_layer(const Module& module);

}  // namespace tessera
