// Dropout (Srivastava et al. 2014): in training each element is zeroed with probability p and the others scaled by 1 / (1 - p);
// in evaluation y = x. The mask is a pure function of (seed, path, global step, micro-step, element).
#pragma once

#include "core/config/fields.h"
#include "core/nn/module.h"

namespace tessera {

struct DropoutConfig {
  double p = 0.5;
  void fields(Fields& f);
};

class Dropout final : public Module {
 public:
  using Config = DropoutConfig;
  explicit Dropout(const DropoutConfig& config) : config_(config) {}

  std::string_view kind() const override { return "dropout"; }
  Value config() const override;
  Var forward(const Var& x, const Context& context) override;  // throws InternalError in training without context.step
  Shape output_shape(const Shape& input, Trace* trace = nullptr) const override;

 private:
  DropoutConfig config_;
};

}  // namespace tessera
