// Layer normalisation over the last axis (Ba et al. 2016). x [..., channels] -> y of the same shape.
#pragma once

#include "core/config/fields.h"
#include "core/nn/module.h"

namespace tessera {

struct LayerNormConfig {
  std::int64_t channels = 1;
  double eps = 1e-5;
  void fields(Fields& f);
};

// Parameters: weight [channels] (1), bias [channels] (0).
class LayerNorm final : public Module {
 public:
  using Config = LayerNormConfig;
  explicit LayerNorm(const LayerNormConfig& config);

  std::string_view kind() const override { return "layer_norm"; }
  Value config() const override;
  Var forward(const Var& x, const Context& context) override;
  Shape output_shape(const Shape& input, Trace* trace = nullptr) const override;
  void reset_parameters(std::uint64_t seed) override;

 private:
  LayerNormConfig config_;
  Parameter& weight_;
  Parameter& bias_;
};

}  // namespace tessera
