// Predicted times behind plan.h.
#pragma once

#include "core/cuda/tucker_conv/plan.h"

namespace tessera::cuda {

// Of one pass in tiles as `shape` has them.
ChainCandidate predict(const ChainShape& shape, const BlockShape& block, TuckerMath math, const Limits& limits);

}  // namespace tessera::cuda
