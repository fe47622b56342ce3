#include "layers/dropout.h"

#include "core/config/read.h"
#include "core/ops/dropout.h"
#include "core/rng.h"

namespace tessera {

void DropoutConfig::fields(Fields& f) {
  f.add("p", p, {.help = "probability of zeroing an element", .range = {.min = 0, .max = 1, .open_max = true}});
}

Value Dropout::config() const { return write(config_); }

Var Dropout::forward(const Var& x, const Context& context) {
  if (!context.training) return x;
  TESSERA_CHECK(context.step != nullptr, InternalError, "dropout '", path(), "': training without a step state");
  return dropout(x, config_.p, RngStream(context.seed, path(), "dropout"), context.step->tensor());
}

Shape Dropout::output_shape(const Shape& input, Trace* trace) const {
  trace_leaf(trace, input, input, 0);
  return input;
}

}  // namespace tessera
