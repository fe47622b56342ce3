// A module that only holds parameters and buffers.
#pragma once

#include <string_view>

#include "core/nn/module.h"

namespace tessera::testing {

class Holder final : public Module {
 public:
  std::string_view kind() const override { return "holder"; }
  Value config() const override { return Value::map(); }
  Var forward(const Var& x, const Context&) override { return x; }
  Shape output_shape(const Shape& input, Trace*) const override { return input; }

  using Module::add_buffer;
  using Module::add_parameter;
};

}  // namespace tessera::testing
