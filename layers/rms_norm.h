// Normalisation by the root of the mean square over the last axis (Zhang and Sennrich, 2019). x [..., channels] -> y of the same
// shape.
#pragma once

#include "core/config/fields.h"
#include "core/nn/module.h"

namespace tessera {

struct RmsNormConfig {
  std::int64_t channels = 1;
  double eps = 1e-5;
  void fields(Fields& f);
};

// Parameter: weight [channels] (1).
class RmsNorm final : public Module {
 public:
  using Config = RmsNormConfig;
  explicit RmsNorm(const RmsNormConfig& config);

  std::string_view kind() const override { return "rms_norm"; }
  Value config() const override;
  Var forward(const Var& x, const Context& context) override;
  Shape output_shape(const Shape& input, Trace* trace = nullptr) const override;
  void reset_parameters(std::uint64_t seed) override;

 private:
  RmsNormConfig config_;
  Parameter& weight_;
};

}  // namespace tessera
