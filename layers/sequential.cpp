#include "layers/sequential.h"

#include "layers/activation.h"
#include "layers/batch_norm.h"

namespace tessera {

Var Sequential::forward(const Var& x, const Context& context) {
  Var y = x;
  const auto& all = children();
  for (std::size_t i = 0; i < all.size(); ++i) {
    const bool relu_follows = i + 1 < all.size() && dynamic_cast<Relu*>(all[i + 1].module.get()) != nullptr;
    if (relu_follows && dynamic_cast<BatchNorm*>(all[i].module.get()) != nullptr) {
      y = norm_add_relu(*all[i].module, y, Var(), context);  // one walk over memory instead of two
      ++i;
    } else {
      y = (*all[i].module)(y, context);
    }
  }
  return y;
}

Shape Sequential::output_shape(const Shape& input, Trace* trace) const {
  Shape shape = input;
  for (const Child& child : children()) shape = child.module->output_shape(shape, trace);
  return shape;
}

}  // namespace tessera
