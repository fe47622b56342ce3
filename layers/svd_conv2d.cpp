#include "layers/svd_conv2d.h"


#include "core/config/read.h"
#include "core/ops/conv2d.h"
#include "core/support/error.h"
#include "layers/init.h"

namespace tessera {
namespace {

const SvdConv2dConfig& checked(const SvdConv2dConfig& config) {
  check_ranks("", "svd_conv2d", svd_rank_problems(config.out, config.in, config.rank));
  return config;
}

}  // namespace

void SvdConv2dConfig::fields(Fields& f) {
  f.add("in", in, {.help = "input channels", .range = at_least(1), .example = "64", .observable = "plan"});
  f.add("out", out, {.help = "output channels", .range = at_least(1), .example = "64", .observable = "plan"});
  f.add("stride", stride, {.help = "step between outputs", .range = at_least(1), .example = "2", .observable = "plan"});
  f.add("padding", padding, {.help = "zeros on each side", .range = non_negative, .example = "1", .observable = "plan"});
  f.add("rank", rank, {.help = "channels between the factors", .range = at_least(1), .example = "32", .observable = "plan"});
  f.add("bias", bias, {.help = "adds a trained offset", .observable = "plan"});
  for (const RankProblem& problem : svd_rank_problems(out, in, rank)) f.require(false, problem.rank, problem.message);
}

SvdConv2d::SvdConv2d(const SvdConv2dConfig& config)
    : config_(checked(config)),
      in_factor_(add_parameter("in_factor", Tensor::zeros({config.rank, 1, 1, config.in}))),
      out_factor_(add_parameter("out_factor", Tensor::zeros({config.out, 1, 1, config.rank}))),
      bias_(config.bias ? &add_parameter("bias", Tensor::zeros({config.out}), ParameterRole::bias) : nullptr) {}

std::unique_ptr<SvdConv2d> SvdConv2d::shaped_for(const Conv2d& dense, std::int64_t rank) {
  const Conv2dConfig& conv = dense.options();
  check_ranks(dense.path(), "conv2d", svd_rank_problems(conv.out, conv.in, rank));
  auto factored = std::make_unique<SvdConv2d>(SvdConv2dConfig{.in = conv.in, .out = conv.out, .stride = conv.stride,
                                                              .padding = conv.padding, .rank = rank, .bias = conv.bias});
  factored->in_factor_.set_trainable(dense.weight().trainable());
  factored->out_factor_.set_trainable(dense.weight().trainable());
  copy_bias(dense.bias(), factored->bias_);
  return factored;
}

void SvdConv2d::set_factors(const SvdFactors& factors) {
  in_factor_.set_value(factors.in_factor.reshape(in_factor_.value().shape()));
  out_factor_.set_value(factors.out_factor.reshape(out_factor_.value().shape()));
}

Value SvdConv2d::config() const { return write(config_); }

Var SvdConv2d::forward(const Var& x, const Context&) {
  const Var narrow = conv2d(x, in_factor_.var(), {}, first_options());
  return conv2d(narrow, out_factor_.var(), bias_ ? bias_->var() : Var());
}

Var SvdConv2d::forward_relu(const Var& x, const Var& residual, const Context&) {
  const Var narrow = conv2d(x, in_factor_.var(), {}, first_options());
  return conv2d_relu(narrow, out_factor_.var(), bias_ ? bias_->var() : Var(), residual);
}

std::unique_ptr<Module> SvdConv2d::scaled(const Tensor& scale, const Tensor& shift) const {
  SvdConv2dConfig config = config_;
  config.bias = true;
  auto result = std::make_unique<SvdConv2d>(config);
  result->in_factor_.set_value(in_factor_.value().clone());
  result->out_factor_.set_value(scaled_filters(out_factor_.value(), scale));
  result->bias_->set_value(scaled_bias(bias_ ? bias_->value() : Tensor(), scale, shift));
  return result;
}

Shape SvdConv2d::output_shape(const Shape& input, Trace* trace) const {
  const Shape narrow = conv2d_output_shape(input, in_factor_.value().shape(), first_options());
  const Shape output = conv2d_output_shape(narrow, out_factor_.value().shape());
  trace_leaf(trace, input, output, output[1] * output[2] * config_.rank * (config_.in + config_.out));
  return output;
}

void SvdConv2d::reset_parameters(std::uint64_t seed) {
  // init_kaiming_normal draws N(0, 2 / fan): twice the fan for the linear first convolution.
  init_kaiming_normal(in_factor_, RngStream(seed, path(), "in_factor"), 2 * config_.rank);
  init_kaiming_normal(out_factor_, RngStream(seed, path(), "out_factor"), config_.out);
  if (bias_ != nullptr) init_constant(*bias_, 0);
}

Tensor SvdConv2d::dense_weight() const {
  const Tensor weight = svd_compose({.out_factor = out_factor_.value().reshape({config_.out, config_.rank}),
                                     .in_factor = in_factor_.value().reshape({config_.rank, config_.in})});
  return weight.reshape({config_.out, 1, 1, config_.in});
}

std::unique_ptr<Module> SvdConv2d::to_dense() const {
  auto dense = std::make_unique<Conv2d>(Conv2dConfig{.in = config_.in, .out = config_.out, .kernel = {1, 1},
                                                     .stride = config_.stride, .padding = config_.padding,
                                                     .bias = config_.bias});
  dense->weight().set_value(dense_weight());
  dense->weight().set_trainable(out_factor_.trainable());
  copy_bias(bias_, dense->bias());
  return dense;
}

std::vector<TorchPart> SvdConv2d::torch_tensors() const {
  std::vector<TorchPart> parts{{.parameter = "in_factor", .name = "0.weight", .convolution = true},
                               {.parameter = "out_factor", .name = "1.weight", .convolution = true}};
  if (bias_ != nullptr) parts.push_back({.parameter = "bias", .name = "1.bias"});
  return parts;
}

}  // namespace tessera
