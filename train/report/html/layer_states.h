// Ranks and sparsity of a run's layers at the ends of its stages.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/nn/module.h"

namespace tessera {

// A layer with weights in a saved network.
struct LayerState {
  std::string path;
  std::string form;  // "dense", "sparse", or the ranks of one that is held in factors: "out 4 in 4"
  double sparsity = 0;  // of its weights (layers/weight_count.h)
};

// In the network's order. Masks have to be loaded where there are any.
std::vector<LayerState> layer_states(Module& network);

}  // namespace tessera
