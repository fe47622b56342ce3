// y = body(x) + shortcut(x), then relu when asked. Children: "body", and "shortcut" unless it is the identity.
// Built as a shell: children come from a builder or a checkpoint's tree.
#pragma once

#include "core/config/fields.h"
#include "core/nn/module.h"

namespace tessera {

struct ResidualConfig {
  bool relu = false;
  void fields(Fields& f);
};

class Residual final : public Module {
 public:
  using Config = ResidualConfig;
  explicit Residual(const ResidualConfig& config) : config_(config) {}
  std::string_view kind() const override { return "residual"; }
  Value config() const override;
  Var forward(const Var& x, const Context& context) override;
  Shape output_shape(const Shape& input, Trace* trace = nullptr) const override;  // throws ShapeError when the paths differ
  std::vector<std::string> needed_children() const override { return {"body"}; }

 private:
  ResidualConfig config_;
};

}  // namespace tessera
