#include "core/support/error.h"
#include "layers/activation.h"
#include "layers/flatten.h"
#include "layers/models/chain.h"
#include "layers/models/networks.h"

namespace tessera::models {

void Mlp::fields(Fields& f) {
  f.add("hidden", hidden,
        {.help = "widths of the hidden layers; 256 and 128 without it",
         .range = at_least(1),
         .example = "[256, 128]",
         .observable = "plan"});
}

std::unique_ptr<Module> Mlp::build(const Shape& input, std::int64_t classes) const {
  TESSERA_CHECK(input.rank() >= 2, ShapeError, "mlp: input is ", input, "; needs [n, ...]");
  const std::vector<std::int64_t> widths = hidden.empty() ? std::vector<std::int64_t>{256, 128} : hidden;
  Chain chain(input);
  chain.add<Flatten>("flatten");
  for (std::size_t i = 0; i < widths.size(); ++i) {
    chain.linear(str("fc", i + 1), widths[i]).add<Relu>(str("relu", i + 1));
  }
  return chain.linear(str("fc", widths.size() + 1), classes).finish();
}

}  // namespace tessera::models
