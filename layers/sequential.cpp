#include "layers/sequential.h"

#include <span>

#include "layers/activation.h"
#include "layers/batch_norm.h"
#include "layers/convolution.h"

namespace tessera {

namespace {

template <class Kind>
bool is(std::span<const Module::Child> all, std::size_t i) {
  return i < all.size() && dynamic_cast<const Kind*>(all[i].module.get()) != nullptr;
}

}  // namespace

Var Sequential::forward(const Var& x, const Context& context) { return forward_first(children().size(), x, context); }

Var Sequential::add_relu(const Var& x, const Var& residual, const Context& context) {
  return run(x, [&] {
    const Var y = forward_first(children().size() - 1, x, context);
    return dynamic_cast<Convolution&>(*children().back().module).add_relu(y, residual, context);
  });
}

Var Sequential::forward_first(std::size_t count, const Var& x, const Context& context) {
  Var y = x;
  const std::span<const Child> all = std::span(children()).first(count);
  for (std::size_t i = 0; i < all.size(); ++i) {
    Module& module = *all[i].module;
    // A norm or convolution and the rectifier after it run as one op: one pass over memory instead of two.
    if (is<BatchNorm>(all, i) && is<Relu>(all, i + 1)) {
      y = norm_add_relu(module, y, Var(), context);
      i += 1;
    } else if (ends_in_convolution(module) && is<Identity>(all, i + 1) && is<Relu>(all, i + 2)) {
      y = conv_norm_add_relu(module, *all[i + 1].module, y, Var(), context);
      i += 2;
    } else {
      y = module(y, context);
    }
  }
  return y;
}

std::int64_t Sequential::input_limit() const { return children().empty() ? 0 : children().front().module->input_limit(); }

Shape Sequential::output_shape(const Shape& input, Trace* trace) const {
  Shape shape = input;
  for (const Child& child : children()) shape = child.module->output_shape(shape, trace);
  return shape;
}

}  // namespace tessera
