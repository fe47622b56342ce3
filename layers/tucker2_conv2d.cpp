#include "layers/tucker2_conv2d.h"

#include <array>

#include "core/config/read.h"
#include "core/error.h"
#include "core/ops/conv2d.h"
#include "layers/init.h"

namespace tessera {

namespace {

constexpr std::array<int, 2> kChannelModes{0, 3};  // of a weight [out, kh, kw, in]

Conv2dOptions core_options(const Tucker2Conv2dConfig& config) {
  return {.stride = config.stride, .padding = config.padding, .dilation = config.dilation};
}

const Tucker2Conv2dConfig& checked(const Tucker2Conv2dConfig& config) {
  check_ranks("", config.out, config.in, {.out = config.rank_out, .in = config.rank_in});
  return config;
}

std::int64_t pixels(const Shape& nhwc) { return nhwc[1] * nhwc[2]; }

}  // namespace

void check_ranks(const std::string& path, std::int64_t out, std::int64_t in, Tucker2Ranks ranks) {
  const std::string layer = path.empty() ? "tucker2_conv2d" : str("layer '", path, "'");
  TESSERA_CHECK(ranks.out >= 1 && ranks.out <= out, ConfigError, layer, ": out rank is ", ranks.out, ", the mode has size ", out,
                "; legal range is 1..", out);
  TESSERA_CHECK(ranks.in >= 1 && ranks.in <= in, ConfigError, layer, ": in rank is ", ranks.in, ", the mode has size ", in,
                "; legal range is 1..", in);
}

void Tucker2Conv2dConfig::fields(Fields& f) {
  f.add("in", in, {.help = "input channels", .range = at_least(1), .example = "64", .observable = "plan"});
  f.add("out", out, {.help = "output channels", .range = at_least(1), .example = "64", .observable = "plan"});
  f.add("kernel", kernel, {.help = "filter size", .range = at_least(1), .example = "3", .observable = "plan"});
  f.add("stride", stride, {.help = "step between outputs", .range = at_least(1), .example = "2", .observable = "plan"});
  f.add("padding", padding, {.help = "zeros on each side", .range = non_negative, .example = "1", .observable = "plan"});
  f.add("dilation", dilation, {.help = "step between filter taps", .range = at_least(1), .example = "2", .observable = "plan"});
  f.add("rank_in", rank_in, {.help = "input channels kept", .range = at_least(1), .example = "32", .observable = "plan"});
  f.add("rank_out", rank_out, {.help = "output channels kept", .range = at_least(1), .example = "32", .observable = "plan"});
  f.add("bias", bias, {.help = "adds a trained offset", .observable = "plan"});
  f.require(rank_in <= in, "rank_in", "must not exceed in");
  f.require(rank_out <= out, "rank_out", "must not exceed out");
}

Tucker2Conv2d::Tucker2Conv2d(const Tucker2Conv2dConfig& config)
    : config_(checked(config)),
      in_factor_(add_parameter("in_factor", Tensor::zeros({config.rank_in, 1, 1, config.in}))),
      core_(add_parameter("core", Tensor::zeros({config.rank_out, config.kernel.h, config.kernel.w, config.rank_in}))),
      out_factor_(add_parameter("out_factor", Tensor::zeros({config.out, 1, 1, config.rank_out}))),
      bias_(config.bias ? &add_parameter("bias", Tensor::zeros({config.out}), ParameterRole::bias) : nullptr) {}

std::unique_ptr<Tucker2Conv2d> Tucker2Conv2d::from_dense(const Conv2d& dense, Tucker2Ranks ranks,
                                                         const linalg::HooiOptions& options) {
  const Conv2dConfig& conv = dense.options();
  TESSERA_CHECK(conv.groups == 1, ConfigError, "layer '", dense.path(), "': groups is ", conv.groups, "; Tucker-2 needs 1");
  check_ranks(dense.path(), conv.out, conv.in, ranks);
  const std::array<std::int64_t, 2> mode_ranks{ranks.out, ranks.in};
  const linalg::Tucker tucker = linalg::hooi(dense.weight().value(), kChannelModes, mode_ranks, options);

  auto factored = std::make_unique<Tucker2Conv2d>(Tucker2Conv2dConfig{.in = conv.in, .out = conv.out, .kernel = conv.kernel,
                                                                      .stride = conv.stride, .padding = conv.padding,
                                                                      .dilation = conv.dilation, .rank_in = ranks.in,
                                                                      .rank_out = ranks.out, .bias = conv.bias});
  factored->core_.set_value(tucker.core.contiguous());
  factored->out_factor_.set_value(tucker.factors[0].reshape({conv.out, 1, 1, ranks.out}));
  factored->in_factor_.set_value(tucker.factors[1].permute({1, 0}).contiguous().reshape({ranks.in, 1, 1, conv.in}));
  for (Parameter* part : {&factored->core_, &factored->out_factor_, &factored->in_factor_}) {
    part->set_trainable(dense.weight().trainable());
  }
  if (conv.bias) {
    factored->bias_->set_value(dense.bias()->value().clone());
    factored->bias_->set_trainable(dense.bias()->trainable());
  }
  return factored;
}

Value Tucker2Conv2d::config() const { return write(config_); }

Var Tucker2Conv2d::forward(const Var& x, const Context&) {
  const Var narrow = conv2d(x, in_factor_.var(), Var(), {});
  const Var filtered = conv2d(narrow, core_.var(), Var(), core_options(config_));
  return conv2d(filtered, out_factor_.var(), bias_ ? bias_->var() : Var(), {});
}

Shape Tucker2Conv2d::output_shape(const Shape& input, Trace* trace) const {
  const Shape narrow = conv2d_output_shape(input, in_factor_.value().shape(), {});
  const Shape filtered = conv2d_output_shape(narrow, core_.value().shape(), core_options(config_));
  const Shape output = conv2d_output_shape(filtered, out_factor_.value().shape(), {});
  const std::int64_t macs = pixels(narrow) * in_factor_.value().numel() +
                            pixels(filtered) * (core_.value().numel() + out_factor_.value().numel());
  trace_leaf(trace, input, output, macs);
  return output;
}

void Tucker2Conv2d::reset_parameters(std::uint64_t seed) {
  // init_kaiming_normal draws N(0, 2 / fan): twice the fan for the linear 1x1 convolutions.
  init_kaiming_normal(in_factor_, RngStream(seed, path(), "in_factor"), 2 * config_.rank_in);
  init_kaiming_normal(core_, RngStream(seed, path(), "core"), config_.rank_out * config_.kernel.h * config_.kernel.w);
  init_kaiming_normal(out_factor_, RngStream(seed, path(), "out_factor"), 2 * config_.out);
  if (bias_ != nullptr) init_constant(*bias_, 0);
}

Tensor Tucker2Conv2d::dense_weight() const {
  const Tensor out = out_factor_.value().reshape({config_.out, config_.rank_out});
  const Tensor in = in_factor_.value().reshape({config_.rank_in, config_.in}).permute({1, 0});
  return linalg::reconstruct({core_.value(), {out, in}, {kChannelModes.begin(), kChannelModes.end()}});
}

}  // namespace tessera
