// Projections of many layers' weights at once.
#pragma once

#include <span>
#include <vector>

#include "admm/constraint.h"
#include "core/comm/communicator.h"

namespace tessera {

// projected[i] = layers[i].constraint->project(weights[i]). On the CPU layers are projected beside each other, a thread each, the
// largest first. `ranks`, which all have the same weights, share the layers out and tell each other the results. Throws what a
// projection throws, with the layer's path.
std::vector<Tensor> project_all(std::span<const ConstrainedLayer> layers, std::span<const Tensor> weights,
                                Communicator& ranks = one_process());

}  // namespace tessera
