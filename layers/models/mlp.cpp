#include "core/support/error.h"
#include "layers/activation.h"
#include "layers/flatten.h"
#include "layers/models/chain.h"
#include "layers/models/networks.h"

namespace tessera::models {

std::unique_ptr<Module> mlp(const ModelConfig& config, const Shape& input) {
  TESSERA_CHECK(input.rank() >= 2, ShapeError, "mlp: input is ", input, "; needs [n, ...]");
  const std::vector<std::int64_t> hidden = config.hidden.empty() ? std::vector<std::int64_t>{256, 128} : config.hidden;
  Chain chain(input);
  chain.add<Flatten>("flatten");
  for (std::size_t i = 0; i < hidden.size(); ++i) {
    chain.linear(str("fc", i + 1), hidden[i]).add<Relu>(str("relu", i + 1));
  }
  return chain.linear(str("fc", hidden.size() + 1), config.classes).finish();
}

}  // namespace tessera::models
