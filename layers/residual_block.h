// The blocks of residual networks (He et al. 2015): y = relu(bn(conv(... relu(bn(conv(x))) ...)) + shortcut(x)).
// Children, with torchvision's names: conv1, bn1, conv2, bn2, (conv3, bn3), and for a projection downsample = sequential(conv
// 1x1, bn).
// The inner channels are those of the children: a pass may have removed some.
// Built as shells: children come from make_basic_block / make_bottleneck or from a checkpoint's tree.
#pragma once

#include <string>

#include "core/config/fields.h"
#include "core/nn/module.h"

namespace tessera {

struct ResidualBlockConfig {
  std::int64_t in = 1;
  std::int64_t out = 1;
  std::int64_t stride = 1;
  // identity: x, needs in == out and stride 1. projection: conv 1x1 and batch norm (option B).
  // option_a: every stride-th pixel, and zero channels, half in front and half behind; no parameters.
  std::string shortcut = "identity";
  void fields(Fields& f);
};

class ResidualBlock : public Module {
 public:
  using Config = ResidualBlockConfig;
  Value config() const override;
  Var forward(const Var& x, const Context& context) override;
  Shape output_shape(const Shape& input, Trace* trace = nullptr) const override;
  std::vector<std::string> needed_children() const override;

  const ResidualBlockConfig& options() const noexcept { return config_; }
  int convolutions() const noexcept { return convolutions_; }

 protected:
  ResidualBlock(const ResidualBlockConfig& config, int convolutions) : config_(config), convolutions_(convolutions) {}

 private:
  Var shortcut(const Var& x, const Context& context) const;

  ResidualBlockConfig config_;
  int convolutions_;
};

// Two 3x3 convolutions; the first has the stride.
class BasicBlock final : public ResidualBlock {
 public:
  explicit BasicBlock(const ResidualBlockConfig& config) : ResidualBlock(config, 2) {}
  std::string_view kind() const override { return "basic_block"; }
};

// 1x1 to out / 4 channels, 3x3 with the stride (torchvision's v1.5), 1x1 to out.
class Bottleneck final : public ResidualBlock {
 public:
  static constexpr std::int64_t kExpansion = 4;
  explicit Bottleneck(const ResidualBlockConfig& config) : ResidualBlock(config, 3) {}
  std::string_view kind() const override { return "bottleneck"; }
};

// Throw ConfigError when the shortcut cannot join in and out.
std::unique_ptr<Module> make_basic_block(const ResidualBlockConfig& config);
std::unique_ptr<Module> make_bottleneck(const ResidualBlockConfig& config);

}  // namespace tessera
