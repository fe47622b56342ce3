#include "layers/conv2d.h"

#include "core/config/read.h"
#include "core/ops/conv2d.h"
#include "core/support/counting.h"
#include "layers/init.h"

namespace tessera {

namespace {

Conv2dOptions op_options(const Conv2dConfig& config) {
  return {.stride = config.stride, .padding = config.padding, .dilation = config.dilation, .groups = config.groups};
}

Shape weight_shape(const Conv2dConfig& config) {
  TESSERA_CHECK(config.groups >= 1 && config.in % config.groups == 0 && config.out % config.groups == 0, ConfigError,
                "conv2d: groups is ", config.groups, ", in is ", config.in, ", out is ", config.out, "; groups must divide both");
  return {config.out, config.kernel.h, config.kernel.w, config.in / config.groups};
}

}  // namespace

void Conv2dConfig::window_fields(Fields& f) {
  f.add("in", in, {.help = "input channels", .range = at_least(1), .example = "3", .observable = "plan"});
  f.add("out", out, {.help = "output channels", .range = at_least(1), .example = "32", .observable = "plan"});
  f.add("kernel", kernel, {.help = "filter size", .range = at_least(1), .example = "3", .observable = "plan"});
  f.add("stride", stride, {.help = "step between outputs", .range = at_least(1), .example = "2", .observable = "plan"});
  f.add("padding", padding, {.help = "zeros on each side", .range = non_negative, .example = "1", .observable = "plan"});
  f.add("dilation", dilation, {.help = "step between filter taps", .range = at_least(1), .example = "2", .observable = "plan"});
}

void Conv2dConfig::bias_field(Fields& f) { f.add("bias", bias, {.help = "adds a trained offset", .observable = "plan"}); }

void Conv2dConfig::fields(Fields& f) {
  window_fields(f);
  f.add("groups", groups, {.help = "independent channel groups", .range = at_least(1), .example = "32", .observable = "plan"});
  bias_field(f);
  f.add("deviation", deviation,
        {.help = "draws initial weights from N(0, deviation^2) rather than by the number of outputs",
         .range = positive,
         .example = "0.02",
         .observable = "bytes"});
  f.require(groups < 1 || (in % groups == 0 && out % groups == 0), "groups", "must divide in and out");
}

Conv2d::Conv2d(const Conv2dConfig& config)
    : config_(config),
      weight_(add_parameter("weight", Tensor::zeros(weight_shape(config)))),
      bias_(config.bias ? &add_parameter("bias", Tensor::zeros({config.out}), ParameterRole::bias) : nullptr) {}

Value Conv2d::config() const { return write(config_); }

Var Conv2d::forward(const Var& x, const Context&) {
  return conv2d(x, weight_.var(), bias_ ? bias_->var() : Var(), op_options(config_));
}

Var Conv2d::forward_relu(const Var& x, const Var& residual, const Context&) {
  return conv2d_relu(x, weight_.var(), bias_ ? bias_->var() : Var(), residual, op_options(config_));
}

std::unique_ptr<Module> Conv2d::scaled(const Tensor& scale, const Tensor& shift) const {
  Conv2dConfig config = config_;
  config.bias = true;
  auto result = std::make_unique<Conv2d>(config);
  result->weight_.set_value(scaled_filters(weight_.value(), scale));
  result->bias_->set_value(scaled_bias(bias_ ? bias_->value() : Tensor(), scale, shift));
  return result;
}

Shape Conv2d::output_shape(const Shape& input, Trace* trace) const {
  const Shape output = conv2d_output_shape(input, weight_.value().shape(), op_options(config_));
  const std::int64_t positions = output.erase(0).numel();
  trace_leaf(trace, input, output, product_of({positions, config_.kernel.h, config_.kernel.w, config_.in / config_.groups}));
  return output;
}

void Conv2d::reset_parameters(std::uint64_t seed) {
  const RngStream stream(seed, path(), "weight");
  if (config_.deviation) {
    init_normal(weight_, stream, *config_.deviation);
  } else {
    init_kaiming_normal(weight_, stream, config_.out * config_.kernel.h * config_.kernel.w);
  }
  if (bias_ != nullptr) init_constant(*bias_, 0);
}

}  // namespace tessera
