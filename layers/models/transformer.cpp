#include "layers/models/transformer.h"

#include "core/support/error.h"

namespace tessera::models {

std::unique_ptr<Sequential> blocks_of(std::int64_t layers, const TransformerBlockOptions& options) {
  auto blocks = std::make_unique<Sequential>();
  for (std::int64_t i = 0; i < layers; ++i) blocks->add_child(str(i), make_transformer_block(options));
  return blocks;
}

}  // namespace tessera::models
