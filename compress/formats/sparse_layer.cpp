#include "compress/formats/sparse_layer.h"

#include "core/support/error.h"
#include "layers/sparse_conv2d.h"
#include "layers/sparse_linear.h"

namespace tessera {

const Parameter* sparse_candidate(const Module& module) {
  if (const auto* const conv = dynamic_cast<const Conv2d*>(&module)) return &conv->weight();
  if (const auto* const linear = dynamic_cast<const Linear*>(&module)) return &linear->weight();
  return nullptr;
}

std::string why_not_sparse(const Module& module) {
  const auto* const conv = dynamic_cast<const Conv2d*>(&module);
  if (conv != nullptr && conv->options().groups != 1) {
    return str("has ", conv->options().groups, " groups; sparse kernels need 1");
  }
  if (!sparse_candidate(module)->mask().defined()) return "its weight has no mask; a prune block makes one";
  return "";
}

std::unique_ptr<Module> sparse_layer(const Module& module) {
  if (const auto* const conv = dynamic_cast<const Conv2d*>(&module)) return SparseConv2d::of(*conv);
  return SparseLinear::of(dynamic_cast<const Linear&>(module));
}

}  // namespace tessera
