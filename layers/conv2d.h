// Two-dimensional convolution. x [n, h, w, in] -> y [n, oh, ow, out],
// oh = (h + 2 padding - dilation (kernel - 1) - 1) / stride + 1.
#pragma once

#include <memory>
#include <optional>

#include "core/config/fields.h"
#include "layers/convolution.h"

namespace tessera {

struct Conv2dConfig {
  std::int64_t in = 1, out = 1;
  Extent kernel{3, 3}, stride{1, 1}, padding{0, 0}, dilation{1, 1};
  std::int64_t groups = 1;
  bool bias = true;
  std::optional<double> deviation = {};  // of the initial weights
  void fields(Fields& f);
  void window_fields(Fields& f);  // without groups, bias and deviation
  void bias_field(Fields& f);
};

// Parameters: weight [out, kh, kw, in / groups], bias [out].
// Initial values are torchvision's: weights N(0, 2 / fan_out) with fan_out = out * kh * kw (groups do not count, as in
// torch.nn.init), biases 0; with a deviation weights are N(0, deviation^2).
class Conv2d final : public Convolution {
 public:
  using Config = Conv2dConfig;
  explicit Conv2d(const Conv2dConfig& config);  // throws ConfigError when groups do not divide in and out

  std::string_view kind() const override { return "conv2d"; }
  Value config() const override;
  Var forward(const Var& x, const Context& context) override;
  std::unique_ptr<Module> scaled(const Tensor& scale, const Tensor& shift) const override;
  Shape output_shape(const Shape& input, Trace* trace = nullptr) const override;
  void reset_parameters(std::uint64_t seed) override;

  const Conv2dConfig& options() const noexcept { return config_; }
  Parameter& weight() const noexcept { return weight_; }
  Parameter* bias() const noexcept { return bias_; }  // null without a bias

 private:
  Var forward_relu(const Var& x, const Var& residual, const Context& context) override;
  Conv2dConfig config_;
  Parameter& weight_;
  Parameter* bias_;
};

}  // namespace tessera
