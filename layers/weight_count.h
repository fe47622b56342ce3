// How many of a network's weights pruning has left.
#pragma once

#include <cstdint>

#include "core/nn/module.h"

namespace tessera {

// Elements of tensors of two dimensions or more that are weights, and of the dense weights that sparse layers stand for.
struct WeightCount {
  std::int64_t kept = 0, all = 0;
  double sparsity() const { return all == 0 ? 0 : 1 - static_cast<double>(kept) / static_cast<double>(all); }
};

WeightCount count_weights(Module& root);
// Counts without the weights of its children.
WeightCount count_own_weights(const Module& module);

}  // namespace tessera
