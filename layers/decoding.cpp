#include "layers/decoding.h"

#include "layers/self_attention.h"

namespace tessera {

std::string why_not_decode(Module& network) {
  if (network.input_limit() == 0) return "the network reads no tokens";
  bool attends = false;
  std::string reason;
  for_each_module(network, [&](const Module& module) {
    const auto* const attention = dynamic_cast<const SelfAttention*>(&module);
    if (attention == nullptr) return;
    attends = true;
    if (attention->options().causal || !reason.empty()) return;
    reason = str("'", module.path(), "' is not causal, so that each position changes with those behind it");
  });
  return attends ? reason : "the network has no attention";
}

}  // namespace tessera
