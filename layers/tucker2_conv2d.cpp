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
  const std::int64_t taps = config.kernel.h * config.kernel.w;
  check_ranks("", "tucker2_conv2d",
              tucker2_rank_problems(config.out, config.in, taps, {.out = config.rank_out, .in = config.rank_in}));
  const bool in_fits = config.in_factor || config.rank_in == config.in;
  const bool out_fits = config.out_factor || config.rank_out == config.out;
  TESSERA_CHECK(in_fits && out_fits, ConfigError, "tucker2_conv2d: only a mode of full rank can do without its factor");
  return config;
}

Var var_of(const Parameter* parameter) { return parameter != nullptr ? parameter->var() : Var(); }

std::int64_t pixels(const Shape& nhwc) { return nhwc[1] * nhwc[2]; }

}  // namespace

std::vector<RankProblem> tucker2_rank_problems(std::int64_t out, std::int64_t in, std::int64_t taps, Tucker2Ranks ranks) {
  std::vector<RankProblem> problems;
  append_range_problem("out", ranks.out, out, problems);
  append_range_problem("in", ranks.in, in, problems);
  const auto exceeds = [&](const char* name, std::int64_t rank, const char* other_name, std::int64_t other) {
    if (!problems.empty() || rank <= taps * other) return;
    problems.push_back({name, str(name, " rank is ", rank, ", more than the ", taps, " taps times the ", other_name, " rank ",
                                  other, "; no core has it")});
  };
  exceeds("out", ranks.out, "in", ranks.in);
  exceeds("in", ranks.in, "out", ranks.out);
  return problems;
}

Tucker2Factors tucker2_project(const Tensor& weight, Tucker2Ranks ranks, const linalg::HooiOptions& options) {
  std::vector<int> modes;
  std::vector<std::int64_t> sizes;
  if (ranks.out < weight.dim(kOut)) {
    modes.push_back(kOut);
    sizes.push_back(ranks.out);
  }
  if (ranks.in < weight.dim(kIn)) {
    modes.push_back(kIn);
    sizes.push_back(ranks.in);
  }
  Tucker2Factors factors;
  if (modes.empty()) {
    TESSERA_CHECK(all_finite(weight), NumericError, "tucker2_conv2d: the weight contains NaN or Inf");
    factors.core = weight.clone();
    return factors;
  }
  const linalg::Tucker tucker = linalg::hooi(weight, modes, sizes, options);
  factors.core = tucker.core.contiguous();
  if (modes.front() == kOut) factors.out_factor = tucker.factors.front();
  if (modes.back() == kIn) factors.in_factor = tucker.factors.back().permute({1, 0}).contiguous();
  return factors;
}

Tensor tucker2_compose(const Tucker2Factors& factors) {
  linalg::Tucker tucker{factors.core, {}, {}};
  if (factors.out_factor.defined()) {
    tucker.factors.push_back(factors.out_factor);
    tucker.modes.push_back(kOut);
  }
  if (factors.in_factor.defined()) {
    tucker.factors.push_back(factors.in_factor.permute({1, 0}));
    tucker.modes.push_back(kIn);
  }
  return linalg::reconstruct(tucker);
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
  f.require(in_factor || rank_in == in, "in_factor", "may be false where rank_in is in");
  f.require(out_factor || rank_out == out, "out_factor", "may be false where rank_out is out");
  for (const RankProblem& problem : tucker2_rank_problems(out, in, kernel.h * kernel.w, {.out = rank_out, .in = rank_in})) {
    f.require(false, "rank_" + problem.rank, problem.message);
  }
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
  check_ranks(dense.path(), "conv2d", tucker2_rank_problems(conv.out, conv.in, conv.kernel.h * conv.kernel.w, ranks));
  auto factored = std::make_unique<Tucker2Conv2d>(Tucker2Conv2dConfig{.in = conv.in, .out = conv.out, .kernel = conv.kernel,
                                                                      .stride = conv.stride, .padding = conv.padding,
                                                                      .dilation = conv.dilation, .rank_in = ranks.in,
                                                                      .rank_out = ranks.out, .bias = conv.bias,
                                                                      .in_factor = ranks.in < conv.in,
                                                                      .out_factor = ranks.out < conv.out});
  for (Parameter* part : {&factored->core_, factored->out_factor_, factored->in_factor_}) {
    if (part != nullptr) part->set_trainable(dense.weight().trainable());
  }
  copy_bias(dense.bias(), factored->bias_);
  return factored;
}

std::unique_ptr<Tucker2Conv2d> Tucker2Conv2d::from_dense(const Conv2d& dense, Tucker2Ranks ranks,
                                                         const linalg::HooiOptions& options) {
  auto factored = shaped_for(dense, ranks);
  factored->set_factors(tucker2_project(dense.weight().value(), ranks, options));
  return factored;
}

void Tucker2Conv2d::set_factors(const Tucker2Factors& factors) {
  core_.set_value(factors.core);
  if (out_factor_ != nullptr) out_factor_->set_value(factors.out_factor.reshape({config_.out, 1, 1, config_.rank_out}));
  if (in_factor_ != nullptr) in_factor_->set_value(factors.in_factor.reshape({config_.rank_in, 1, 1, config_.in}));
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
  Tucker2Factors factors{.out_factor = {}, .core = core_.value(), .in_factor = {}};
  if (out_factor_) factors.out_factor = out_factor_->value().reshape({config_.out, config_.rank_out});
  if (in_factor_) factors.in_factor = in_factor_->value().reshape({config_.rank_in, config_.in});
  return tucker2_compose(factors);
}

std::vector<TorchPart> Tucker2Conv2d::torch_tensors() const {
  std::vector<TorchPart> parts;
  int index = 0;
  const auto add = [&](const Parameter* factor) {
    if (factor == nullptr) return;
    parts.push_back({.parameter = factor->name(), .name = str(index, ".weight"), .convolution = true});
    ++index;
  };
  add(in_factor_);
  add(&core_);
  add(out_factor_);
  if (bias_ != nullptr) parts.push_back({.parameter = "bias", .name = str(index - 1, ".bias")});
  return parts;
}

std::unique_ptr<Module> Tucker2Conv2d::to_dense() const {
  auto dense = std::make_unique<Conv2d>(Conv2dConfig{.in = config_.in, .out = config_.out, .kernel = config_.kernel,
                                                     .stride = config_.stride, .padding = config_.padding,
                                                     .dilation = config_.dilation, .bias = config_.bias});
  dense->weight().set_value(dense_weight());
  dense->weight().set_trainable(core_.trainable());
  copy_bias(bias_, dense->bias());
  return dense;
}

}  // namespace tessera
