#include "layers/decoding.h"

#include "core/support/error.h"
#include "layers/self_attention.h"

namespace tessera {
namespace {

// Whether each position gets an answer. Layers that join them, like flatten and token_pool, give fewer or take only one length.
bool answers_each(const Module& network, std::int64_t positions) {
  try {
    const Shape answers = network.output_shape({1, positions});
    return answers.rank() == 3 && answers.dim(1) == positions;
  } catch (const ShapeError&) {
    return false;
  }
}

}  // namespace

bool has_attention(Module& network) {
  bool has = false;
  for_each_module(network, [&](const Module& module) { has = has || dynamic_cast<const SelfAttention*>(&module) != nullptr; });
  return has;
}

std::string attention_that_looks_ahead(Module& network) {
  std::string path;
  for_each_module(network, [&](const Module& module) {
    const auto* const attention = dynamic_cast<const SelfAttention*>(&module);
    if (attention != nullptr && !attention->options().causal && path.empty()) path = module.path();
  });
  return path;
}

std::string why_not_decode(Module& network) {
  if (network.input_limit() == 0) return "the network reads no tokens";
  if (!has_attention(network)) return "the network has no attention";
  const std::string ahead = attention_that_looks_ahead(network);
  if (!ahead.empty()) return str("'", ahead, "' is not causal, so that each position changes with those behind it");
  return answers_each(network, 1) ? "" : "the network gives no answer for each position";
}

void require_decoding(Module& network, const std::string& who) {
  const std::string reason = why_not_decode(network);
  TESSERA_CHECK(reason.empty(), ConfigError, who, ": decode is of networks that write text; ", reason);
}

}  // namespace tessera
