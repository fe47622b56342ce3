#include "layers/tt_garipov_conv2d.h"

#include <algorithm>

#include "core/config/read.h"
#include "core/ops/conv2d.h"
#include "core/ops/view.h"
#include "core/support/counting.h"
#include "core/support/error.h"
#include "layers/init.h"
#include "layers/tt_pairs.h"

namespace tessera {
namespace {

Conv2dOptions options_of(const Conv2dConfig& conv) {
  return {.stride = conv.stride, .padding = conv.padding, .dilation = conv.dilation};
}

// With kh kw multiplied into i_1, the pairs are those of the matrix [out, kh kw in], the order of the weight in memory.
Modes with_taps(const Extent& kernel, Modes in_modes) {
  in_modes.front() = product_of({in_modes.front(), kernel.h, kernel.w});
  return in_modes;
}

Shape weight_shape(const Extent& kernel, const Modes& out_modes, const Modes& in_modes) {
  return {product_of(out_modes), kernel.h, kernel.w, product_of(in_modes)};
}

std::string modes_problem(const TtGaripovConv2dConfig& config) {
  return pairs_problem(config.out_modes, config.conv.out, config.in_modes, config.conv.in);
}

std::vector<RankProblem> rank_problems(const TtGaripovConv2dConfig& config) {
  return garipov_rank_problems(garipov_modes(config.conv.kernel, config.out_modes, config.in_modes), tt_ranks(config.ranks));
}

TtGaripovConv2dConfig with_defaults(TtGaripovConv2dConfig config) {
  if (config.out_modes.empty()) config.out_modes = balanced_modes(config.conv.out, 2);
  if (config.in_modes.empty()) config.in_modes = balanced_modes(config.conv.in, 2);
  if (config.ranks.empty()) config.ranks.assign(config.out_modes.size(), 1);
  return config;
}

TtGaripovConv2dConfig checked(const TtGaripovConv2dConfig& given) {
  TtGaripovConv2dConfig config = with_defaults(given);
  TESSERA_CHECK(config.conv.groups == 1, ConfigError, "tt_garipov_conv2d: groups is ", config.conv.groups, "; needs 1");
  const std::string problem = modes_problem(config);
  TESSERA_CHECK(problem.empty(), ConfigError, "tt_garipov_conv2d: ", problem);
  check_ranks("", "tt_garipov_conv2d", rank_problems(config));
  return config;
}

}  // namespace

Modes garipov_modes(const Extent& kernel, const Modes& out_modes, const Modes& in_modes) {
  Modes modes = paired_modes(out_modes, in_modes);
  modes.insert(modes.begin(), product_of({kernel.h, kernel.w}));
  return modes;
}

Tensor garipov_tensor(const Tensor& weight, const Modes& out_modes, const Modes& in_modes) {
  const Extent kernel{weight.dim(1), weight.dim(2)};
  const std::int64_t taps = kernel.h * kernel.w, out = weight.dim(0), first = out_modes.front();
  const Tensor matrix = weight.contiguous().reshape({out, weight.numel() / out});
  const Tensor pairs =
      tt_tensor(matrix, out_modes, with_taps(kernel, in_modes)).reshape({first, taps, weight.numel() / (first * taps)});
  return pairs.permute({1, 0, 2}).contiguous().reshape(shape_of(garipov_modes(kernel, out_modes, in_modes)));
}

Tensor garipov_weight(const Tensor& tensor, const Extent& kernel, const Modes& out_modes, const Modes& in_modes) {
  const std::int64_t taps = kernel.h * kernel.w, first = out_modes.front();
  const Tensor pairs = tensor.reshape({taps, first, tensor.numel() / (first * taps)}).permute({1, 0, 2}).contiguous();
  return tt_matrix(pairs, out_modes, with_taps(kernel, in_modes)).reshape(weight_shape(kernel, out_modes, in_modes));
}

Var garipov_weight(std::span<const Var> cores, const Extent& kernel, const Modes& out_modes, const Modes& in_modes) {
  const std::int64_t taps = kernel.h * kernel.w, first = out_modes.front(), rank = cores[1].shape()[2];
  // The first two cores together make the first core of a matrix's train.
  const Var two = reshape(joined_cores(cores.first(2)), {taps, first, in_modes.front() * rank});
  std::vector<Var> pairs{reshape(permute(two, {1, 0, 2}), {1, first * taps * in_modes.front(), rank})};
  pairs.insert(pairs.end(), cores.begin() + 2, cores.end());
  return reshape(tt_matrix(joined_cores(pairs), out_modes, with_taps(kernel, in_modes)),
                 weight_shape(kernel, out_modes, in_modes));
}

std::vector<RankProblem> garipov_rank_problems(const Modes& modes, const Ranks& ranks) {
  if (ranks.size() + 1 != modes.size()) return tt_rank_problems(modes, ranks);
  const std::int64_t whole = product_of(modes);
  for (std::size_t k = 0; k < modes.size(); ++k) {
    const Rank& before = ranks[k == 0 ? 0 : k - 1];
    const Rank& after = ranks[k + 1 == modes.size() ? k - 1 : k];
    const std::int64_t left = k == 0 ? 1 : before.value, right = k + 1 == modes.size() ? 1 : after.value;
    for (const Rank& rank : {before, after}) {
      if (rank.value < 1) return {{rank.name, str(rank.name, " is ", rank.value, "; must be at least 1")}};
    }
    // It divides because products of ranks may overflow.
    if (left <= whole / modes[k] / right) continue;
    const Rank& larger = left > right ? before : after;
    return {{larger.name, str(larger.name, " is ", larger.value, ": core", k + 1, ", ", Shape{left, modes[k], right},
                              ", is larger than the whole weight of ", whole, " elements")}};
  }
  return {};
}

void TtGaripovConv2dConfig::fields(Fields& f) {
  conv.window_fields(f);
  f.add("out_modes", out_modes,
        {.help = "sizes that the output channels are split into; default: two, balanced",
         .range = at_least(1),
         .example = "[4, 8, 4]",
         .observable = "plan"});
  f.add("in_modes", in_modes,
        {.help = "sizes that the input channels are split into; default: two, balanced",
         .range = at_least(1),
         .example = "[4, 4, 4]",
         .observable = "plan"});
  f.add("ranks", ranks,
        {.help = "behind the kernel and between the pairs of modes, one after the other; default: 1 each",
         .range = at_least(1),
         .example = "[27, 22, 22]",
         .observable = "plan"});
  conv.bias_field(f);
  const TtGaripovConv2dConfig whole = with_defaults(*this);
  const std::string problem = modes_problem(whole);
  f.require(problem.empty(), "", problem);
  if (!problem.empty() || std::ranges::any_of(whole.ranks, [](std::int64_t rank) { return rank < 1; }))
    return;  // the range reports this
  for (const RankProblem& rank : rank_problems(whole)) f.require(false, "ranks", rank.message);
}

TtGaripovConv2d::TtGaripovConv2d(const TtGaripovConv2dConfig& config) : config_(checked(config)) {
  for (const Shape& shape : core_shapes(garipov_modes(config_.conv.kernel, config_.out_modes, config_.in_modes), config_.ranks)) {
    cores_.add(add_parameter(str("core", cores_.size() + 1), Tensor::zeros(shape)));
  }
  if (config_.conv.bias) bias_ = &add_parameter("bias", Tensor::zeros({config_.conv.out}), ParameterRole::bias);
}

void TtGaripovConv2d::take_traits(const Conv2d& dense) {
  cores_.set_trainable(dense.weight().trainable());
  copy_bias(dense.bias(), bias_);
}

Value TtGaripovConv2d::config() const { return write(config_); }

Var TtGaripovConv2d::weight() const {
  return made_once(composed_, cores_[0].value(),
                   [&] { return garipov_weight(cores_.vars(), config_.conv.kernel, config_.out_modes, config_.in_modes); });
}

Var TtGaripovConv2d::forward(const Var& x, const Context&) {
  return conv2d(x, weight(), bias_ ? bias_->var() : Var(), options_of(config_.conv));
}

Var TtGaripovConv2d::forward_relu(const Var& x, const Var& residual, const Context&) {
  return conv2d_relu(x, weight(), bias_ ? bias_->var() : Var(), residual, options_of(config_.conv));
}

std::unique_ptr<Module> TtGaripovConv2d::scaled(const Tensor& scale, const Tensor& shift) const {
  return dense()->scaled(scale, shift);
}

Shape TtGaripovConv2d::output_shape(const Shape& input, Trace* trace) const {
  const Conv2dConfig& conv = config_.conv;
  const Shape output =
      conv2d_output_shape(input, weight_shape(conv.kernel, config_.out_modes, config_.in_modes), options_of(conv));
  trace_leaf(trace, input, output, product_of({output.erase(0).numel(), conv.kernel.h, conv.kernel.w, conv.in}));
  return output;
}

void TtGaripovConv2d::reset_parameters(std::uint64_t seed) {
  const Conv2dConfig& conv = config_.conv;
  cores_.draw(seed, path(), 2.0 / static_cast<double>(conv.out * conv.kernel.h * conv.kernel.w));
  if (bias_ != nullptr) init_constant(*bias_, 0);
}

Tensor TtGaripovConv2d::dense_weight() const {
  return garipov_weight(cores_.composed(), config_.conv.kernel, config_.out_modes, config_.in_modes);
}

std::unique_ptr<Conv2d> TtGaripovConv2d::dense() const {
  auto dense = std::make_unique<Conv2d>(config_.conv);
  dense->weight().set_value(dense_weight());
  dense->weight().set_trainable(cores_[0].trainable());
  copy_bias(bias_, dense->bias());
  return dense;
}

std::vector<TorchPart> TtGaripovConv2d::torch_tensors() const { return cores_.torch_tensors(bias_ != nullptr, false); }

}  // namespace tessera
