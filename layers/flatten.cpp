#include "layers/flatten.h"

#include "core/ops/view.h"
#include "core/support/error.h"

namespace tessera {

Var Flatten::forward(const Var& x, const Context&) { return flatten(x); }

Shape Flatten::output_shape(const Shape& input, Trace* trace) const {
  TESSERA_CHECK(input.rank() >= 1, ShapeError, "flatten '", path(), "': input is a scalar; needs [n, ...]");
  const Shape output{input.dim(0), input.erase(0).numel()};
  trace_leaf(trace, input, output, 0);
  return output;
}

}  // namespace tessera
