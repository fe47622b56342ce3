// What a network costs, layer by layer and in all.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/shape.h"

namespace tessera {

// One row per layer, in forward order: a leaf of the tree, or a module whose children are parts of it. Sizes are per sample: the
// batch dimension is left out of MACs.
struct LayerCost {
  std::string path;
  std::string kind;
  Shape input;  // with the batch dimension
  Shape output;
  std::int64_t parameters = 0;
  std::int64_t macs = 0;  // multiply-accumulates per sample, of products alone
  std::int64_t weight_bytes = 0;  // parameters and buffers as stored
};
using Trace = std::vector<LayerCost>;

// Path of the first layer that has any; empty without one. Training needs no gradient of its input.
std::string first_with_parameters(const Trace& trace);

struct Cost {
  std::int64_t parameters = 0;
  std::int64_t macs = 0;
  std::int64_t weight_bytes = 0;
};

}  // namespace tessera
