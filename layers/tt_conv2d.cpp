#include "layers/tt_conv2d.h"

#include "core/config/read.h"
#include "core/ops/conv2d.h"
#include "core/ops/tucker_conv.h"
#include "core/ops/view.h"
#include "core/support/counting.h"
#include "core/support/error.h"
#include "layers/init.h"
#include "layers/tucker2_conv2d.h"

namespace tessera {
namespace {

Conv2dOptions core_options(const Conv2dConfig& conv) {
  return {.stride = conv.stride, .padding = conv.padding, .dilation = conv.dilation};
}

// What is wrong with the modes of one side, or "" if they fit.
std::string modes_problem(const Modes& modes, std::int64_t channels) {
  if (modes.size() < 2) return "needs two modes at least; with one on each side it is tucker2";
  if (modes.size() > kMostConvModes) return str("has ", modes.size(), " modes; tt holds ", kMostConvModes, " on a side at most");
  if (product_of(modes) != channels)
    return str(to_text(modes), " is ", product_of(modes), ", the layer has ", channels, " channels");
  return "";
}

TtConv2dConfig with_defaults(TtConv2dConfig config) {
  if (config.out_modes.empty()) config.out_modes = balanced_modes(config.conv.out, 2);
  if (config.in_modes.empty()) config.in_modes = balanced_modes(config.conv.in, 2);
  if (config.ranks.empty()) config.ranks.assign(config.out_modes.size() + config.in_modes.size(), 1);
  return config;
}

TtConv2dConfig checked(const TtConv2dConfig& given) {
  const TtConv2dConfig config = with_defaults(given);
  const Conv2dConfig& conv = config.conv;
  TESSERA_CHECK(conv.groups == 1, ConfigError, "tt_conv2d: groups is ", conv.groups, "; needs 1");
  const std::string out = modes_problem(config.out_modes, conv.out), in = modes_problem(config.in_modes, conv.in);
  TESSERA_CHECK(out.empty(), ConfigError, "tt_conv2d: out_modes: ", out);
  TESSERA_CHECK(in.empty(), ConfigError, "tt_conv2d: in_modes: ", in);
  check_ranks("", "tt_conv2d", tt_rank_problems(tt_conv_modes(conv, config.out_modes, config.in_modes), tt_ranks(config.ranks)));
  return config;
}

}  // namespace

Modes tt_conv_modes(const Conv2dConfig& conv, const Modes& out_modes, const Modes& in_modes) {
  Modes modes = out_modes;
  modes.push_back(product_of({conv.kernel.h, conv.kernel.w}));
  modes.insert(modes.end(), in_modes.begin(), in_modes.end());
  return modes;
}

void TtConv2dConfig::fields(Fields& f) {
  conv.window_fields(f);
  f.add("out_modes", out_modes, {.help = "sizes that the output channels are split into; default: two, balanced",
                                 .range = at_least(1), .example = "[4, 8, 4]", .observable = "plan"});
  f.add("in_modes", in_modes, {.help = "sizes that the input channels are split into; default: two, balanced",
                               .range = at_least(1), .example = "[4, 4, 4]", .observable = "plan"});
  f.add("ranks", ranks, {.help = "between the modes of out, the kernel and the modes of in, one after the other; default: 1 each",
                         .range = at_least(1), .example = "[4, 22, 20, 4]", .observable = "plan"});
  conv.bias_field(f);
  const TtConv2dConfig whole = with_defaults(*this);
  const std::string out_problem = modes_problem(whole.out_modes, conv.out), in_problem = modes_problem(whole.in_modes, conv.in);
  f.require(out_problem.empty(), "out_modes", out_problem);
  f.require(in_problem.empty(), "in_modes", in_problem);
  if (!out_problem.empty() || !in_problem.empty()) return;
  for (const RankProblem& problem :
       tt_rank_problems(tt_conv_modes(conv, whole.out_modes, whole.in_modes), tt_ranks(whole.ranks))) {
    f.require(false, "ranks", problem.message);
  }
}

TtConv2d::TtConv2d(const TtConv2dConfig& config) : config_(checked(config)) {
  for (const Shape& shape : core_shapes(tt_conv_modes(config_.conv, config_.out_modes, config_.in_modes), config_.ranks)) {
    cores_.add(add_parameter(str("core", cores_.size() + 1), Tensor::zeros(shape)));
  }
  if (config_.conv.bias) bias_ = &add_parameter("bias", Tensor::zeros({config_.conv.out}), ParameterRole::bias);
}

void TtConv2d::take_traits(const Conv2d& dense) {
  cores_.set_trainable(dense.weight().trainable());
  copy_bias(dense.bias(), bias_);
}

Value TtConv2d::config() const { return write(config_); }

Shape TtConv2d::weight_shape() const {
  const Conv2dConfig& conv = config_.conv;
  return {conv.out, conv.kernel.h, conv.kernel.w, conv.in};
}

TtConv2d::Filters TtConv2d::filters(std::span<const Var> cores) const {
  const Conv2dConfig& conv = config_.conv;
  const std::size_t p = config_.out_modes.size();
  const std::int64_t r_out = config_.ranks[p - 1], r_in = config_.ranks[p];
  const auto in_factor = [&] { return reshape(joined_cores(cores.subspan(p + 1)), {r_in, 1, 1, conv.in}); };
  const auto out_factor = [&] { return reshape(joined_cores(cores.first(p)), {conv.out, 1, 1, r_out}); };
  return {.in_factor = made_once(in_side_, cores_[p + 1].value(), in_factor),
          .core = reshape(cores[p], {r_out, conv.kernel.h, conv.kernel.w, r_in}),
          .out_factor = made_once(out_side_, cores_[0].value(), out_factor)};
}

// operands: x, then the cores.
Var TtConv2d::run_way(std::size_t way, std::span<const Var> operands, const Var& bias, const Var& residual, bool relu) const {
  const Var& x = operands.front();
  const std::span<const Var> cores = operands.subspan(1);
  const Conv2dOptions options = core_options(config_.conv);
  if (way == 0) {
    const Filters f = filters(cores);
    if (relu) return tucker2_conv2d_relu(x, f.in_factor, f.core, f.out_factor, bias, residual, options);
    return tucker2_conv2d(x, f.in_factor, f.core, f.out_factor, bias, options);
  }
  const Var weight = made_once(weight_, cores_[0].value(), [&] { return reshape(joined_cores(cores), weight_shape()); });
  return relu ? conv2d_relu(x, weight, bias, residual, options) : conv2d(x, weight, bias, options);
}

Var TtConv2d::apply(const Var& x, const Var& residual, bool relu, const Context& context) {
  std::vector<Var> operands = cores_.vars();
  operands.insert(operands.begin(), x);
  const std::size_t way = execution_.choose(*this, operands, context.recompute, [&] {
    const Shape weight = weight_shape();
    const std::int64_t y = conv2d_output_shape(x.shape(), weight, core_options(config_.conv)).numel();
    return Ways{{"chain", "composed"}, 2.0 * static_cast<double>(y * (weight.numel() / weight[0])),
                [this](std::size_t i, std::span<const Var> o) { return run_way(i, o, {}, {}, false); }};
  });
  const Var bias = bias_ != nullptr ? bias_->var() : Var();
  if (relu) return run_way(way, operands, bias, residual, relu);
  return run_kept_or_recomputed(
      context.recompute, std::move(operands), bias,
      [this, way](std::span<const Var> o, const Var& offset) { return run_way(way, o, offset, {}, false); });
}

Var TtConv2d::forward(const Var& x, const Context& context) { return apply(x, {}, false, context); }

Var TtConv2d::forward_relu(const Var& x, const Var& residual, const Context& context) {
  return apply(x, residual, true, context);
}

std::unique_ptr<Module> TtConv2d::scaled(const Tensor& scale, const Tensor& shift) const {
  const NoGrad no_grad;
  const Filters f = filters(cores_.vars());
  Tucker2Conv2d multiplied({.conv = config_.conv, .rank_in = f.in_factor.shape()[0], .rank_out = f.core.shape()[0]});
  multiplied.set_factors(
      Tucker2Factors{.out_factor = f.out_factor.value(), .core = f.core.value(), .in_factor = f.in_factor.value()});
  if (bias_ != nullptr) multiplied.parameter("bias").set_value(bias_->value());
  return multiplied.scaled(scale, shift);
}

Shape TtConv2d::output_shape(const Shape& input, Trace* trace) const {
  const Conv2dConfig& conv = config_.conv;
  const std::int64_t r_out = config_.ranks[config_.out_modes.size() - 1], r_in = config_.ranks[config_.out_modes.size()];
  const Shape narrow = conv2d_output_shape(input, {r_in, 1, 1, conv.in});
  const Shape core = conv2d_output_shape(narrow, {r_out, conv.kernel.h, conv.kernel.w, r_in}, core_options(conv));
  const Shape output = conv2d_output_shape(core, {conv.out, 1, 1, r_out});
  trace_leaf(trace, input, output,
             sum_of({product_of({input[1], input[2], r_in, conv.in}),
                     product_of({core[1], core[2], r_out, conv.kernel.h, conv.kernel.w, r_in}),
                     product_of({core[1], core[2], conv.out, r_out})}));
  return output;
}

void TtConv2d::reset_parameters(std::uint64_t seed) {
  const Conv2dConfig& conv = config_.conv;
  cores_.draw(seed, path(), 2.0 / static_cast<double>(conv.out * conv.kernel.h * conv.kernel.w));
  if (bias_ != nullptr) init_constant(*bias_, 0);
}

Tensor TtConv2d::dense_weight() const {
  return cores_.composed().reshape(weight_shape());
}

std::unique_ptr<Module> TtConv2d::to_dense() const {
  auto dense = std::make_unique<Conv2d>(config_.conv);
  dense->weight().set_value(dense_weight());
  dense->weight().set_trainable(cores_[0].trainable());
  copy_bias(bias_, dense->bias());
  return dense;
}

std::vector<TorchPart> TtConv2d::torch_tensors() const { return cores_.torch_tensors(bias_ != nullptr, false); }

}  // namespace tessera
