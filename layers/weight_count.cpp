#include "layers/weight_count.h"

#include "core/mask_bits.h"
#include "layers/compressed.h"

namespace tessera {

WeightCount count_own_weights(const Module& module) {
  WeightCount count;
  const CompressedLayer* const compressed = as_compressed(module);
  if (compressed != nullptr) count.all += compressed->left_out();
  for (const auto& parameter : module.parameters()) {
    const bool sparse_values = compressed != nullptr && parameter->value().rank() == 1;
    if (parameter->role() != ParameterRole::weight || (parameter->value().rank() < 2 && !sparse_values)) continue;
    count.all += parameter->value().numel();
    count.kept += parameter->mask().defined() ? kept_bits(packed_bits(parameter->mask())) : parameter->value().numel();
  }
  return count;
}

WeightCount count_weights(Module& root) {
  WeightCount count;
  for_each_module(root, [&](Module& module) {
    const WeightCount own = count_own_weights(module);
    count.kept += own.kept;
    count.all += own.all;
  });
  return count;
}

}  // namespace tessera
