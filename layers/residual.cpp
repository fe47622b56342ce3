#include "layers/residual.h"

#include "core/config/read.h"
#include "core/ops/arithmetic.h"
#include "core/ops/relu.h"
#include "core/support/error.h"

namespace tessera {

void ResidualConfig::fields(Fields& f) { f.add("relu", relu, {.help = "applies relu after the sum"}); }

Value Residual::config() const { return write(config_); }

Var Residual::forward(const Var& x, const Context& context) {
  const Var body = child("body")(x, context);
  const Var sum = add(body, has_child("shortcut") ? child("shortcut")(x, context) : x);
  return config_.relu ? relu(sum) : sum;
}

Shape Residual::output_shape(const Shape& input, Trace* trace) const {
  const Shape body = child("body").output_shape(input, trace);
  const Shape shortcut = has_child("shortcut") ? child("shortcut").output_shape(input, trace) : input;
  TESSERA_CHECK(body == shortcut, ShapeError, "residual '", path(), "': body gives ", body, ", shortcut gives ", shortcut,
                "; they must be equal");
  return body;
}

}  // namespace tessera
