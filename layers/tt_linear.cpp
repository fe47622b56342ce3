#include "layers/tt_linear.h"

#include <cmath>

#include "core/config/read.h"
#include "core/ops/arithmetic.h"
#include "core/ops/cast.h"
#include "core/ops/dense_operands.h"
#include "core/ops/linear.h"
#include "core/ops/matmul.h"
#include "core/ops/view.h"
#include "core/support/counting.h"
#include "core/support/error.h"
#include "layers/init.h"

namespace tessera {
namespace {

std::string modes_problem(const TtLinearConfig& config) {
  return pairs_problem(config.out_modes, config.out, config.in_modes, config.in);
}

TtLinearConfig with_defaults(TtLinearConfig config) {
  if (config.out_modes.empty()) config.out_modes = balanced_modes(config.out, 2);
  if (config.in_modes.empty()) config.in_modes = balanced_modes(config.in, 2);
  if (config.ranks.empty()) config.ranks.assign(config.out_modes.size() - 1, 1);
  return config;
}

TtLinearConfig checked(const TtLinearConfig& given) {
  TtLinearConfig config = with_defaults(given);
  const std::string problem = modes_problem(config);
  TESSERA_CHECK(problem.empty(), ConfigError, "tt_linear: ", problem);
  check_ranks("", "tt_linear", tt_rank_problems(paired_modes(config.out_modes, config.in_modes), tt_ranks(config.ranks)));
  return config;
}

}  // namespace

TtHalves tt_halves(const Modes& out_modes, const Modes& in_modes, std::span<const std::int64_t> ranks) {
  TtHalves best;
  for (std::size_t left = 1; left < out_modes.size(); ++left) {
    const std::int64_t i_left = product_of(std::span(in_modes).first(left)),
                       i_right = product_of(std::span(in_modes).subspan(left));
    const std::int64_t o_left = product_of(std::span(out_modes).first(left));
    const std::int64_t o_right = product_of(std::span(out_modes).subspan(left));
    const std::int64_t macs = product_of({i_left, ranks[left - 1], o_right, sum_of({i_right, o_left})});
    if (best.macs == 0 || macs < best.macs) best = {left, macs};
  }
  return best;
}

void TtLinearConfig::fields(Fields& f) {
  f.add("in", in, {.help = "input features", .range = at_least(1), .example = "784", .observable = "plan"});
  f.add("out", out, {.help = "output features", .range = at_least(1), .example = "10", .observable = "plan"});
  f.add("out_modes", out_modes,
        {.help = "sizes that the output features are split into; default: two, balanced",
         .range = at_least(1),
         .example = "[4, 8, 8, 4]",
         .observable = "plan"});
  f.add("in_modes", in_modes,
        {.help = "sizes that the input features are split into; default: two, balanced",
         .range = at_least(1),
         .example = "[4, 8, 8, 4]",
         .observable = "plan"});
  f.add("ranks", ranks,
        {.help = "between the modes, one after the other; default: 1 each",
         .range = at_least(1),
         .example = "[4, 4, 4]",
         .observable = "plan"});
  f.add("bias", bias, {.help = "adds a trained offset", .observable = "plan"});
  const TtLinearConfig config = with_defaults(*this);
  const std::string problem = modes_problem(config);
  f.require(problem.empty(), "", problem);
  if (!problem.empty()) return;
  for (const RankProblem& rank : tt_rank_problems(paired_modes(config.out_modes, config.in_modes), tt_ranks(config.ranks))) {
    f.require(false, "ranks", rank.message);
  }
}

TtLinear::TtLinear(const TtLinearConfig& config)
    : config_(checked(config)), halves_(tt_halves(config_.out_modes, config_.in_modes, config_.ranks)) {
  for (const Shape& shape : core_shapes(paired_modes(config_.out_modes, config_.in_modes), config_.ranks)) {
    cores_.add(add_parameter(str("core", cores_.size() + 1), Tensor::zeros(shape)));
  }
  if (config_.bias) bias_ = &add_parameter("bias", Tensor::zeros({config_.out}), ParameterRole::bias);
}

void TtLinear::take_traits(const Linear& dense) {
  cores_.set_trainable(dense.weight().trainable());
  copy_bias(dense.bias(), bias_);
}

Value TtLinear::config() const { return write(config_); }

Var TtLinear::half(std::span<const Var> cores, std::size_t first) const {
  return joined_pairs(cores, std::span(config_.out_modes).subspan(first, cores.size()),
                      std::span(config_.in_modes).subspan(first, cores.size()));
}

Var TtLinear::right_first(const Var& x, std::span<const Var> cores) const {
  const std::size_t split = halves_.left;
  // [o_left, i_left r] and [r o_right, i_right]
  const Var left = made_once(left_, cores_[0].value(), [&] { return half(cores.first(split), 0); });
  const Var right = made_once(right_, cores_[split].value(), [&] { return half(cores.subspan(split), split); });
  const std::int64_t o_left = left.shape()[1], i_left = left.shape()[2], r = left.shape()[3];
  const std::int64_t o_right = right.shape()[1], i_right = right.shape()[2];
  const std::int64_t rows = x.shape().numel() / config_.in;
  const Var between = linear(reshape(x, {rows * i_left, i_right}), reshape(right, {r * o_right, i_right}));
  // The activations may have a narrower dtype than the f32 parameters.
  return matmul(cast(reshape(left, {1, o_left, i_left * r}), between.dtype()), reshape(between, {rows, i_left * r, o_right}));
}

Var TtLinear::left_first(const Var& x, std::span<const Var> cores) const {
  const std::size_t split = halves_.left;
  // [o_left r, i_left] and [o_right, r i_right]
  const Var left = made_once(turned_left_, cores_[0].value(), [&] {
    const Var made = half(cores.first(split), 0);
    return reshape(permute(made, {0, 1, 3, 2}), {made.shape()[1] * made.shape()[3], made.shape()[2]});
  });
  const Var right = made_once(turned_right_, cores_[split].value(), [&] {
    const Var made = half(cores.subspan(split), split);
    return reshape(permute(made, {1, 0, 2, 3}), {made.shape()[1], made.shape()[0] * made.shape()[2]});
  });
  const std::int64_t i_left = left.shape()[1], i_right = config_.in / i_left, rows = x.shape().numel() / config_.in;
  const std::int64_t o_left = config_.out / right.shape()[0];
  const Var between = matmul(cast(reshape(left, {1, left.shape()[0], i_left}), x.dtype()), reshape(x, {rows, i_left, i_right}));
  return linear(reshape(between, {rows * o_left, right.shape()[1]}), right);
}

Var TtLinear::composed(std::span<const Var> cores) const {
  return made_once(weight_, cores_[0].value(),
                   [&] { return composed_pairs(cores, config_.out_modes, config_.in_modes, halves_.left); });
}

// operands: x, then the cores.
Var TtLinear::run_way(std::size_t way, std::span<const Var> operands) const {
  const Var& x = operands.front();
  const std::span<const Var> cores = operands.subspan(1);
  if (way == 0) return right_first(x, cores);
  if (way == 1) return left_first(x, cores);
  return linear(x, composed(cores));
}

Var TtLinear::forward(const Var& x, const Context& context) {
  std::vector<Var> operands = cores_.vars();
  operands.insert(operands.begin(), x);
  const std::size_t way = execution_.choose(*this, operands, context.recompute, [&] {
    return Ways{{"right-first", "left-first", "composed"},
                2.0 * static_cast<double>(x.shape().numel() * config_.out),
                [this](std::size_t i, std::span<const Var> o) { return run_way(i, o); }};
  });
  Shape output = x.shape();
  output.set(output.rank() - 1, config_.out);
  const Var product = run_kept_or_recomputed(context.recompute, std::move(operands), {},
                                             [this, way](std::span<const Var> o, const Var&) { return run_way(way, o); });
  const Var y = reshape(product, output);
  return bias_ != nullptr ? add(y, cast(bias_->var(), y.dtype())) : y;
}

Shape TtLinear::output_shape(const Shape& input, Trace* trace) const {
  TESSERA_CHECK(input.rank() >= 2 && input.dim(-1) == config_.in, ShapeError, "tt_linear '", path(), "': input is ", input,
                "; needs [..., ", config_.in, "]");
  Shape output = input;
  output.set(input.rank() - 1, config_.out);
  const std::int64_t rows = checked_size("tt_linear", output).erase(0).numel() / config_.out;
  trace_leaf(trace, input, output, product_of({rows, halves_.macs}));
  return output;
}

void TtLinear::reset_parameters(std::uint64_t seed) {
  const auto in = static_cast<double>(config_.in);
  cores_.draw(seed, path(), 1 / (3 * in));
  if (bias_ != nullptr) init_uniform(*bias_, RngStream(seed, path(), "bias"), 1 / std::sqrt(in));
}

Tensor TtLinear::dense_weight() const { return tt_matrix(cores_.composed(), config_.out_modes, config_.in_modes); }

std::unique_ptr<Module> TtLinear::to_dense() const {
  auto dense = std::make_unique<Linear>(LinearConfig{.in = config_.in, .out = config_.out, .bias = config_.bias});
  dense->weight().set_value(dense_weight());
  dense->weight().set_trainable(cores_[0].trainable());
  copy_bias(bias_, dense->bias());
  return dense;
}

std::vector<TorchPart> TtLinear::torch_tensors() const { return cores_.torch_tensors(bias_ != nullptr, true); }

}  // namespace tessera
