#include "layers/sequential.h"

namespace tessera {

Var Sequential::forward(const Var& x, const Context& context) {
  Var y = x;
  for (const Child& child : children()) y = (*child.module)(y, context);
  return y;
}

Shape Sequential::output_shape(const Shape& input, Trace* trace) const {
  Shape shape = input;
  for (const Child& child : children()) shape = child.module->output_shape(shape, trace);
  return shape;
}

}  // namespace tessera
