// Projections of many layers' weights at once.
#pragma once

#include <span>
#include <vector>

#include "admm/constraint.h"

namespace tessera {

// projected[i] = layers[i].constraint->project(weights[i]). On the CPU layers are projected beside each other, a thread each, the
// largest first. Throws what a projection throws, with the layer's path.
std::vector<Tensor> project_all(std::span<const ConstrainedLayer> layers, std::span<const Tensor> weights);

}  // namespace tessera
