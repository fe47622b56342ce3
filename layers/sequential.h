// Children one after another, in order of addition. Built as a shell: children come from a builder or a checkpoint's tree.
#pragma once

#include "core/config/fields.h"
#include "core/nn/module.h"

namespace tessera {

struct SequentialConfig {
  void fields(Fields&) {}
};

class Sequential final : public Module {
 public:
  using Config = SequentialConfig;
  explicit Sequential(const SequentialConfig& = {}) {}
  std::string_view kind() const override { return "sequential"; }
  Value config() const override { return Value::map(); }
  Var forward(const Var& x, const Context& context) override;
  Shape output_shape(const Shape& input, Trace* trace = nullptr) const override;
  std::int64_t input_limit() const override;  // its first child's

  // relu(y + residual) of a chain whose last child is a Convolution, as that one's add_relu; the residual may be undefined.
  Var add_relu(const Var& x, const Var& residual, const Context& context);

 private:
  Var forward_first(std::size_t count, const Var& x, const Context& context);
};

}  // namespace tessera
