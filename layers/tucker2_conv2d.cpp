#include "layers/tucker2_conv2d.h"

#include <vector>

#include "core/config/read.h"
#include "core/finite.h"
#include "core/ops/tucker_conv.h"
#include "core/support/error.h"
#include "layers/init.h"

namespace tessera {

namespace {

constexpr int kOut = 0;  // modes of a weight [out, kh, kw, in]
constexpr int kIn = 3;

Conv2dOptions core_options(const Tucker2Conv2dConfig& config) {
  return {.stride = config.stride, .padding = config.padding, .dilation = config.dilation};
}

const Tucker2Conv2dConfig& checked(const Tucker2Conv2dConfig& config) {
  check_ranks("", config.out, config.in, {.out = config.rank_out, .in = config.rank_in});
  const bool in_fits = config.in_factor || config.rank_in == config.in;
  const bool out_fits = config.out_factor || config.rank_out == config.out;
  TESSERA_CHECK(in_fits && out_fits, ConfigError, "tucker2_conv2d: only a mode of full rank can do without its factor");
  return config;
}

Var var_of(const Parameter* parameter) { return parameter != nullptr ? parameter->var() : Var(); }

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
  f.add("in_factor", in_factor, {.help = "false: none, at full rank", .observable = "plan"});
  f.add("out_factor", out_factor, {.help = "false: none, at full rank", .observable = "plan"});
  f.require(rank_in <= in, "rank_in", "must not exceed in");
  f.require(in_factor || rank_in == in, "in_factor", "may be false where rank_in is in");
  f.require(out_factor || rank_out == out, "out_factor", "may be false where rank_out is out");
  f.require(rank_out <= out, "rank_out", "must not exceed out");
}

Tucker2Conv2d::Tucker2Conv2d(const Tucker2Conv2dConfig& config)
    : config_(checked(config)),
      in_factor_(config.in_factor ? &add_parameter("in_factor", Tensor::zeros({config.rank_in, 1, 1, config.in})) : nullptr),
      core_(add_parameter("core", Tensor::zeros({config.rank_out, config.kernel.h, config.kernel.w, config.rank_in}))),
      out_factor_(config.out_factor ? &add_parameter("out_factor", Tensor::zeros({config.out, 1, 1, config.rank_out})) : nullptr),
      bias_(config.bias ? &add_parameter("bias", Tensor::zeros({config.out}), ParameterRole::bias) : nullptr) {}

std::unique_ptr<Tucker2Conv2d> Tucker2Conv2d::shaped_for(const Conv2d& dense, Tucker2Ranks ranks) {
  const Conv2dConfig& conv = dense.options();
  TESSERA_CHECK(conv.groups == 1, ConfigError, "layer '", dense.path(), "': groups is ", conv.groups, "; Tucker-2 needs 1");
  check_ranks(dense.path(), conv.out, conv.in, ranks);
  auto factored = std::make_unique<Tucker2Conv2d>(Tucker2Conv2dConfig{.in = conv.in, .out = conv.out, .kernel = conv.kernel,
                                                                      .stride = conv.stride, .padding = conv.padding,
                                                                      .dilation = conv.dilation, .rank_in = ranks.in,
                                                                      .rank_out = ranks.out, .bias = conv.bias,
                                                                      .in_factor = ranks.in < conv.in,
                                                                      .out_factor = ranks.out < conv.out});
  for (Parameter* part : {&factored->core_, factored->out_factor_, factored->in_factor_}) {
    if (part != nullptr) part->set_trainable(dense.weight().trainable());
  }
  if (conv.bias) {
    factored->bias_->set_value(dense.bias()->value().clone());
    factored->bias_->set_trainable(dense.bias()->trainable());
  }
  return factored;
}

std::unique_ptr<Tucker2Conv2d> Tucker2Conv2d::from_dense(const Conv2d& dense, Tucker2Ranks ranks,
                                                         const linalg::HooiOptions& options) {
  auto factored = shaped_for(dense, ranks);
  factored->decompose(dense.weight().value(), options);
  return factored;
}

void Tucker2Conv2d::decompose(const Tensor& weight, const linalg::HooiOptions& options) {
  std::vector<int> modes;
  std::vector<std::int64_t> ranks;
  if (out_factor_ != nullptr) {
    modes.push_back(kOut);
    ranks.push_back(config_.rank_out);
  }
  if (in_factor_ != nullptr) {
    modes.push_back(kIn);
    ranks.push_back(config_.rank_in);
  }
  if (modes.empty()) {
    TESSERA_CHECK(all_finite(weight), NumericError, "tucker2_conv2d: the weight contains NaN or Inf");
    return core_.set_value(weight.clone());
  }
  const linalg::Tucker tucker = linalg::hooi(weight, modes, ranks, options);
  core_.set_value(tucker.core.contiguous());
  if (out_factor_ != nullptr) out_factor_->set_value(tucker.factors.front().reshape({config_.out, 1, 1, config_.rank_out}));
  if (in_factor_ != nullptr) {
    in_factor_->set_value(tucker.factors.back().permute({1, 0}).contiguous().reshape({config_.rank_in, 1, 1, config_.in}));
  }
}

Value Tucker2Conv2d::config() const { return write(config_); }

Var Tucker2Conv2d::forward(const Var& x, const Context&) {
  return tucker2_conv2d(x, var_of(in_factor_), core_.var(), var_of(out_factor_), var_of(bias_), core_options(config_));
}

Var Tucker2Conv2d::forward_relu(const Var& x, const Var& residual, const Context&) {
  return tucker2_conv2d_relu(x, var_of(in_factor_), core_.var(), var_of(out_factor_), var_of(bias_), residual,
                             core_options(config_));
}

std::unique_ptr<Module> Tucker2Conv2d::scaled(const Tensor& scale, const Tensor& shift) const {
  Tucker2Conv2dConfig config = config_;
  config.bias = true;
  auto result = std::make_unique<Tucker2Conv2d>(config);
  const auto copy = [&](Parameter* to, const Parameter* from, bool last) {
    if (from != nullptr) to->set_value(last ? scaled_filters(from->value(), scale) : from->value().clone());
  };
  copy(result->in_factor_, in_factor_, false);
  copy(&result->core_, &core_, out_factor_ == nullptr);
  copy(result->out_factor_, out_factor_, true);
  result->bias_->set_value(scaled_bias(bias_ ? bias_->value() : Tensor(), scale, shift));
  return result;
}

Shape Tucker2Conv2d::output_shape(const Shape& input, Trace* trace) const {
  Shape shape = input;
  std::int64_t macs = 0;
  const auto pass = [&](const Parameter& filter, const Conv2dOptions& options) {
    shape = conv2d_output_shape(shape, filter.value().shape(), options);
    macs += pixels(shape) * filter.value().numel();
  };
  if (in_factor_) pass(*in_factor_, {});
  pass(core_, core_options(config_));
  if (out_factor_) pass(*out_factor_, {});
  const Shape output = shape;
  trace_leaf(trace, input, output, macs);
  return output;
}

void Tucker2Conv2d::reset_parameters(std::uint64_t seed) {
  // init_kaiming_normal draws N(0, 2 / fan): twice the fan for the linear 1x1 convolutions.
  if (in_factor_) init_kaiming_normal(*in_factor_, RngStream(seed, path(), "in_factor"), 2 * config_.rank_in);
  init_kaiming_normal(core_, RngStream(seed, path(), "core"), config_.rank_out * config_.kernel.h * config_.kernel.w);
  if (out_factor_) init_kaiming_normal(*out_factor_, RngStream(seed, path(), "out_factor"), 2 * config_.out);
  if (bias_ != nullptr) init_constant(*bias_, 0);
}

Tensor Tucker2Conv2d::dense_weight() const {
  linalg::Tucker tucker{core_.value(), {}, {}};
  if (out_factor_) {
    tucker.factors.push_back(out_factor_->value().reshape({config_.out, config_.rank_out}));
    tucker.modes.push_back(kOut);
  }
  if (in_factor_) {
    tucker.factors.push_back(in_factor_->value().reshape({config_.rank_in, config_.in}).permute({1, 0}));
    tucker.modes.push_back(kIn);
  }
  return linalg::reconstruct(tucker);
}

std::unique_ptr<Conv2d> Tucker2Conv2d::to_dense() const {
  auto dense = std::make_unique<Conv2d>(Conv2dConfig{.in = config_.in, .out = config_.out, .kernel = config_.kernel,
                                                     .stride = config_.stride, .padding = config_.padding,
                                                     .dilation = config_.dilation, .bias = config_.bias});
  dense->weight().set_value(dense_weight());
  dense->weight().set_trainable(core_.trainable());
  if (bias_ != nullptr) {
    dense->bias()->set_value(bias_->value().clone());
    dense->bias()->set_trainable(bias_->trainable());
  }
  return dense;
}

}  // namespace tessera
