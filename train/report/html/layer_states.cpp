#include "train/report/html/layer_states.h"

#include "layers/compressed.h"
#include "layers/weight_count.h"

namespace tessera {
namespace {

std::string form_of(const Module& module) {
  const CompressedLayer* const compressed = as_compressed(module);
  if (compressed == nullptr) return "dense";
  return compressed->is_sparse() ? "sparse" : to_string(compressed->ranks());
}

}  // namespace

std::vector<LayerState> layer_states(Module& network) {
  std::vector<LayerState> states;
  for_each_module(network, [&](Module& module) {
    const WeightCount count = count_own_weights(module);
    if (count.all == 0) return;
    states.push_back({module.path(), form_of(module), count.sparsity()});
  });
  return states;
}

}  // namespace tessera
