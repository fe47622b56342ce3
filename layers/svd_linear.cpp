#include "layers/svd_linear.h"

#include <cmath>

#include "core/config/read.h"
#include "core/ops/dense_operands.h"
#include "core/ops/linear.h"
#include "core/ops/matmul.h"
#include "core/support/counting.h"
#include "layers/init.h"

namespace tessera {
namespace {

const SvdLinearConfig& checked(const SvdLinearConfig& config) {
  check_ranks("", "svd_linear", svd_rank_problems(config.out, config.in, config.rank));
  return config;
}

double bound_of_variance(double variance) { return std::sqrt(3 * variance); }  // the bound of U(-bound, bound)

}  // namespace

void SvdLinearConfig::fields(Fields& f) {
  f.add("in", in, {.help = "input features", .range = at_least(1), .example = "784", .observable = "plan"});
  f.add("out", out, {.help = "output features", .range = at_least(1), .example = "10", .observable = "plan"});
  f.add("rank", rank, {.help = "features between the factors", .range = at_least(1), .example = "8", .observable = "plan"});
  f.add("bias", bias, {.help = "adds a trained offset", .observable = "plan"});
  for (const RankProblem& problem : svd_rank_problems(out, in, rank)) f.require(false, problem.rank, problem.message);
}

SvdLinear::SvdLinear(const SvdLinearConfig& config)
    : config_(checked(config)),
      in_factor_(add_parameter("in_factor", Tensor::zeros({config.rank, config.in}))),
      out_factor_(add_parameter("out_factor", Tensor::zeros({config.out, config.rank}))),
      bias_(config.bias ? &add_parameter("bias", Tensor::zeros({config.out}), ParameterRole::bias) : nullptr) {}

std::unique_ptr<SvdLinear> SvdLinear::shaped_for(const Linear& dense, std::int64_t rank) {
  const LinearConfig& linear = dense.options();
  check_ranks(dense.path(), "linear", svd_rank_problems(linear.out, linear.in, rank));
  auto factored =
      std::make_unique<SvdLinear>(SvdLinearConfig{.in = linear.in, .out = linear.out, .rank = rank, .bias = linear.bias});
  factored->in_factor_.set_trainable(dense.weight().trainable());
  factored->out_factor_.set_trainable(dense.weight().trainable());
  copy_bias(dense.bias(), factored->bias_);
  return factored;
}

void SvdLinear::set_factors(const SvdFactors& factors) {
  in_factor_.set_value(factors.in_factor);
  out_factor_.set_value(factors.out_factor);
}

Value SvdLinear::config() const { return write(config_); }

// operands: x, in_factor, out_factor.
Var SvdLinear::run_way(std::size_t way, std::span<const Var> operands, const Var& bias) const {
  if (way == 0) return linear(linear(operands[0], operands[1]), operands[2], bias);
  return linear(operands[0], made_once(weight_, in_factor_.value(), [&] { return matmul(operands[2], operands[1]); }), bias);
}

Var SvdLinear::forward(const Var& x, const Context& context) {
  std::vector<Var> operands{x, in_factor_.var(), out_factor_.var()};
  const std::size_t way = execution_.choose(*this, operands, context.recompute, [&] {
    return Ways{{"chain", "composed"}, 2.0 * static_cast<double>(x.shape().numel() * config_.out),
                [this](std::size_t i, std::span<const Var> o) { return run_way(i, o, {}); }};
  });
  const Var bias = bias_ != nullptr ? bias_->var() : Var();
  return run_kept_or_recomputed(context.recompute, std::move(operands), bias,
                                [this, way](std::span<const Var> o, const Var& offset) { return run_way(way, o, offset); });
}

Shape SvdLinear::output_shape(const Shape& input, Trace* trace) const {
  TESSERA_CHECK(input.rank() >= 2 && input.dim(-1) == config_.in, ShapeError, "svd_linear '", path(), "': input is ", input,
                "; needs [..., ", config_.in, "]");
  Shape output = input;
  output.set(input.rank() - 1, config_.out);
  const std::int64_t rows = checked_size("svd_linear", output).erase(0).numel() / config_.out;
  trace_leaf(trace, input, output, product_of({rows, config_.rank, config_.in + config_.out}));
  return output;
}

void SvdLinear::reset_parameters(std::uint64_t seed) {
  const auto in = static_cast<double>(config_.in);
  const auto rank = static_cast<double>(config_.rank);
  init_uniform(in_factor_, RngStream(seed, path(), "in_factor"), bound_of_variance(1 / in));
  init_uniform(out_factor_, RngStream(seed, path(), "out_factor"), bound_of_variance(1 / (3 * rank)));
  if (bias_ != nullptr) init_uniform(*bias_, RngStream(seed, path(), "bias"), 1 / std::sqrt(in));
}

Tensor SvdLinear::dense_weight() const {
  return svd_compose({.out_factor = out_factor_.value(), .in_factor = in_factor_.value()});
}

std::unique_ptr<Module> SvdLinear::to_dense() const {
  auto dense = std::make_unique<Linear>(LinearConfig{.in = config_.in, .out = config_.out, .bias = config_.bias});
  dense->weight().set_value(dense_weight());
  dense->weight().set_trainable(out_factor_.trainable());
  copy_bias(bias_, dense->bias());
  return dense;
}

std::vector<TorchPart> SvdLinear::torch_tensors() const {
  std::vector<TorchPart> parts{{.tensor = "in_factor", .name = "0.weight", .reads_features = true},
                               {.tensor = "out_factor", .name = "1.weight"}};
  if (bias_ != nullptr) parts.push_back({.tensor = "bias", .name = "1.bias"});
  return parts;
}

}  // namespace tessera
