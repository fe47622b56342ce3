#include "layers/residual_block.h"

#include <array>
#include <utility>

#include "core/config/read.h"
#include "core/ops/pad.h"
#include "core/ops/pool2d.h"
#include "core/support/error.h"
#include "layers/batch_norm.h"
#include "layers/conv2d.h"
#include "layers/convolution.h"
#include "layers/sequential.h"

namespace tessera {

namespace {

void check(const ResidualBlockConfig& config, const char* kind) {
  const bool same = config.in == config.out && config.stride == 1;
  TESSERA_CHECK(config.shortcut != "identity" || same, ConfigError, kind, ": the identity shortcut joins ", config.in, " to ",
                config.out, " channels at stride ", config.stride, "; needs equal channels and stride 1");
  TESSERA_CHECK(config.shortcut != "option_a" || config.out >= config.in, ConfigError, kind, ": the option_a shortcut joins ",
                config.in, " to ", config.out, " channels; it can only add channels");
}

void add_conv_bn(Module& block, int index, const Conv2dConfig& conv) {
  block.add_child(str("conv", index), std::make_unique<Conv2d>(conv));
  block.add_child(str("bn", index), std::make_unique<BatchNorm>(BatchNormConfig{.channels = conv.out}));
}

Conv2dConfig conv3x3(std::int64_t in, std::int64_t out, std::int64_t stride) {
  return {.in = in, .out = out, .kernel = {3, 3}, .stride = {stride, stride}, .padding = {1, 1}, .bias = false};
}

Conv2dConfig conv1x1(std::int64_t in, std::int64_t out, std::int64_t stride) {
  return {.in = in, .out = out, .kernel = {1, 1}, .stride = {stride, stride}, .bias = false};
}

void add_projection(Module& block, const ResidualBlockConfig& config) {
  if (config.shortcut != "projection") return;
  auto downsample = std::make_unique<Sequential>();
  downsample->add_child("0", std::make_unique<Conv2d>(conv1x1(config.in, config.out, config.stride)));
  downsample->add_child("1", std::make_unique<BatchNorm>(BatchNormConfig{.channels = config.out}));
  block.add_child("downsample", std::move(downsample));
}

// A pool of 1x1 windows is the strided subsample: each output is one pixel.
Pool2dOptions subsample(std::int64_t stride) { return {.kernel = {1, 1}, .stride = {stride, stride}}; }

}  // namespace

void ResidualBlockConfig::fields(Fields& f) {
  f.add("in", in, {.help = "input channels", .range = at_least(1), .example = "64", .observable = "plan"});
  f.add("out", out, {.help = "output channels", .range = at_least(1), .example = "128", .observable = "plan"});
  f.add("stride", stride, {.help = "of the first 3x3 convolution", .range = at_least(1), .example = "2", .observable = "plan"});
  f.add("shortcut", shortcut, {.help = "what is added", .choices = {"identity", "option_a", "projection"}, .observable = "plan"});
}

Value ResidualBlock::config() const { return write(config_); }

Var ResidualBlock::shortcut(const Var& x, const Context& context) const {
  if (config_.shortcut == "identity") return x;
  if (config_.shortcut == "projection") return child("downsample")(x, context);
  const Var sampled = config_.stride == 1 ? x : avg_pool2d(x, subsample(config_.stride));
  const std::int64_t extra = config_.out - config_.in;
  const std::array<std::pair<std::int64_t, std::int64_t>, 4> padding{{{0, 0}, {0, 0}, {0, 0}, {extra / 2, extra - extra / 2}}};
  return extra == 0 ? sampled : pad(sampled, padding);
}

Var ResidualBlock::forward(const Var& x, const Context& context) {
  const Var joined = shortcut(x, context);
  Var y = x;
  for (int i = 1; i <= convolutions_; ++i) {
    y = conv_norm_add_relu(child(str("conv", i)), child(str("bn", i)), y, i < convolutions_ ? Var() : joined, context);
  }
  return y;
}

Shape ResidualBlock::output_shape(const Shape& input, Trace* trace) const {
  Shape body = input;
  for (int i = 1; i <= convolutions_; ++i) {
    body = child(str("bn", i)).output_shape(child(str("conv", i)).output_shape(body, trace), trace);
  }
  Shape joined = input;
  if (config_.shortcut == "projection") joined = child("downsample").output_shape(input, trace);
  if (config_.shortcut == "option_a") {
    joined = pool2d_output_shape(input, subsample(config_.stride));
    joined.set(3, config_.out);
  }
  TESSERA_CHECK(body == joined, ShapeError, kind(), " '", path(), "': body gives ", body, ", shortcut gives ", joined,
                "; they must be equal");
  return body;
}

std::vector<std::string> ResidualBlock::needed_children() const {
  std::vector<std::string> names;
  for (int i = 1; i <= convolutions_; ++i) names.insert(names.end(), {str("conv", i), str("bn", i)});
  if (config_.shortcut == "projection") names.emplace_back("downsample");
  return names;
}

std::unique_ptr<Module> make_basic_block(const ResidualBlockConfig& config) {
  check(config, "basic_block");
  auto block = std::make_unique<BasicBlock>(config);
  add_conv_bn(*block, 1, conv3x3(config.in, config.out, config.stride));
  add_conv_bn(*block, 2, conv3x3(config.out, config.out, 1));
  add_projection(*block, config);
  return block;
}

std::unique_ptr<Module> make_bottleneck(const ResidualBlockConfig& config) {
  check(config, "bottleneck");
  TESSERA_CHECK(config.out % Bottleneck::kExpansion == 0, ConfigError, "bottleneck: out is ", config.out,
                "; must be a multiple of ", Bottleneck::kExpansion);
  const std::int64_t width = config.out / Bottleneck::kExpansion;
  auto block = std::make_unique<Bottleneck>(config);
  add_conv_bn(*block, 1, conv1x1(config.in, width, 1));
  add_conv_bn(*block, 2, conv3x3(width, width, config.stride));
  add_conv_bn(*block, 3, conv1x1(width, config.out, 1));
  add_projection(*block, config);
  return block;
}

}  // namespace tessera
