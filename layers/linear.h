// y = x weight^T + bias. x [..., in] -> y [..., out].
#pragma once

#include <optional>

#include "core/config/fields.h"
#include "core/nn/module.h"

namespace tessera {

struct LinearConfig {
  std::int64_t in = 1;
  std::int64_t out = 1;
  bool bias = true;
  std::optional<double> deviation = {};  // of the initial weights
  void fields(Fields& f);
};

// Parameters: weight [out, in], bias [out].
// Initial values are PyTorch's nn.Linear: kaiming_uniform(a = sqrt(5)), that is U(-1/sqrt(in), 1/sqrt(in)), for both; with a
// deviation weights are N(0, deviation^2) and biases 0.
class Linear final : public Module {
 public:
  using Config = LinearConfig;
  explicit Linear(const LinearConfig& config);

  std::string_view kind() const override { return "linear"; }
  Value config() const override;
  Var forward(const Var& x, const Context& context) override;
  Shape output_shape(const Shape& input, Trace* trace = nullptr) const override;
  void reset_parameters(std::uint64_t seed) override;

  const LinearConfig& options() const noexcept { return config_; }
  Parameter& weight() const noexcept { return weight_; }
  Parameter* bias() const noexcept { return bias_; }  // null without a bias

 private:
  LinearConfig config_;
  Parameter& weight_;
  Parameter* bias_;
};

}  // namespace tessera
