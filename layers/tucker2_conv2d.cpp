#include "layers/tucker2_conv2d.h"

#include <vector>

#include "core/config/read.h"
#include "core/finite.h"
#include "core/ops/matmul.h"
#include "core/ops/tucker_conv.h"
#include "core/ops/view.h"
#include "core/support/counting.h"
#include "core/support/error.h"

namespace tessera {

namespace {

constexpr int kOut = 0;  // modes of a weight [out, kh, kw, in]
constexpr int kIn = 3;
constexpr const char* kNormRule = "stands between filters; needs in_factor or out_factor";

std::vector<RankProblem> problems_of(const Tucker2Conv2dConfig& config) {
  const Conv2dConfig& conv = config.conv;
  return tucker2_rank_problems(conv.out, conv.in, product_of({conv.kernel.h, conv.kernel.w}),
                               {.out = config.rank_out, .in = config.rank_in});
}

const Tucker2Conv2dConfig& checked(const Tucker2Conv2dConfig& config) {
  check_ranks("", "tucker2_conv2d", problems_of(config));
  const bool in_fits = config.in_factor || config.rank_in == config.conv.in;
  const bool out_fits = config.out_factor || config.rank_out == config.conv.out;
  TESSERA_CHECK(in_fits && out_fits, ConfigError, "tucker2_conv2d: only a mode of full rank can do without its factor");
  TESSERA_CHECK(!config.batch_norm || config.in_factor || config.out_factor, ConfigError, "tucker2_conv2d: batch_norm ",
                kNormRule);
  return config;
}

}  // namespace

std::vector<RankProblem> tucker2_rank_problems(std::int64_t out, std::int64_t in, std::int64_t taps, Tucker2Ranks ranks) {
  std::vector<RankProblem> problems;
  append_range_problem("out", ranks.out, out, problems);
  append_range_problem("in", ranks.in, in, problems);
  const auto exceeds = [&](const char* name, std::int64_t rank, const char* other_name, std::int64_t other) {
    if (!problems.empty() || rank <= product_of({taps, other})) return;
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
  conv.window_fields(f);
  f.add("rank_in", rank_in, {.help = "input channels kept", .range = at_least(1), .example = "32", .observable = "plan"});
  f.add("rank_out", rank_out, {.help = "output channels kept", .range = at_least(1), .example = "32", .observable = "plan"});
  conv.bias_field(f);
  f.add("in_factor", in_factor, {.help = "false: none, at full rank", .observable = "plan"});
  f.add("out_factor", out_factor, {.help = "false: none, at full rank", .observable = "plan"});
  batch_norm_field(f, batch_norm);
  f.require(in_factor || rank_in == conv.in, "in_factor", "may be false where rank_in is in");
  f.require(out_factor || rank_out == conv.out, "out_factor", "may be false where rank_out is out");
  f.require(!batch_norm || in_factor || out_factor, "batch_norm", kNormRule);
  for (const RankProblem& problem : problems_of(*this)) f.require(false, "rank_" + problem.rank, problem.message);
}

Tucker2Conv2d::Tucker2Conv2d(const Tucker2Conv2dConfig& config)
    : FactoredConv2d("tucker2_conv2d", config.conv, config.batch_norm), config_(checked(config)) {
  const Conv2dConfig& conv = config.conv;
  if (config.in_factor) add_filter("in_factor", {config.rank_in, 1, 1, conv.in});
  add_filter("core", {config.rank_out, conv.kernel.h, conv.kernel.w, config.rank_in},
             {.stride = conv.stride, .padding = conv.padding, .dilation = conv.dilation}, 2);
  if (config.out_factor) add_filter("out_factor", {conv.out, 1, 1, config.rank_out});
  add_bias();
}

std::unique_ptr<Tucker2Conv2d> Tucker2Conv2d::shaped_for(const Conv2d& dense, Tucker2Ranks ranks) {
  const Conv2dConfig& conv = dense.options();
  TESSERA_CHECK(conv.groups == 1, ConfigError, "layer '", dense.path(), "': groups is ", conv.groups, "; Tucker-2 needs 1");
  check_ranks(dense.path(), "conv2d", tucker2_rank_problems(conv.out, conv.in, product_of({conv.kernel.h, conv.kernel.w}), ranks));
  auto factored = std::make_unique<Tucker2Conv2d>(Tucker2Conv2dConfig{.conv = conv, .rank_in = ranks.in, .rank_out = ranks.out,
                                                                      .in_factor = ranks.in < conv.in,
                                                                      .out_factor = ranks.out < conv.out});
  factored->take_traits(dense);
  return factored;
}

std::unique_ptr<Tucker2Conv2d> Tucker2Conv2d::from_dense(const Conv2d& dense, Tucker2Ranks ranks,
                                                         const linalg::HooiOptions& options) {
  auto factored = shaped_for(dense, ranks);
  factored->set_factors(tucker2_project(dense.weight().value(), ranks, options));
  return factored;
}

void Tucker2Conv2d::set_factors(const Tucker2Factors& factors) {
  std::vector<Tensor> values;
  for (const Tensor& factor : {factors.in_factor, factors.core, factors.out_factor}) {
    if (factor.defined()) values.push_back(factor);
  }
  FactoredConv2d::set_factors(values);
}

Value Tucker2Conv2d::config() const { return without_default_norm(write(config_)); }

std::unique_ptr<FactoredConv2d> Tucker2Conv2d::with(const Conv2dConfig& conv) const {
  Tucker2Conv2dConfig config = config_;
  config.conv = conv;
  config.batch_norm = false;
  return std::make_unique<Tucker2Conv2d>(config);
}

Var Tucker2Conv2d::chain(const Var& x, std::span<const Var> filters, const Tail& tail, const Context& context) const {
  if (has_norms()) return FactoredConv2d::chain(x, filters, tail, context);
  const Var in_factor = config_.in_factor ? filters.front() : Var(), out_factor = config_.out_factor ? filters.back() : Var();
  const Conv2dOptions& options = this->filters()[core()].options;
  if (!tail.relu) return tucker2_conv2d(x, in_factor, filters[core()], out_factor, tail.bias, options);
  return tucker2_conv2d_relu(x, in_factor, filters[core()], out_factor, tail.bias, tail.residual, options);
}

Var Tucker2Conv2d::composed(std::span<const Var> filters) const {
  Var weight = filters[core()];
  if (config_.in_factor) {
    const Var rows = reshape(weight, {weight.shape().numel() / config_.rank_in, config_.rank_in});
    weight = matmul(rows, reshape(filters.front(), {config_.rank_in, config_.conv.in}));
  }
  if (!config_.out_factor) return weight;
  const Var columns = reshape(weight, {config_.rank_out, weight.shape().numel() / config_.rank_out});
  return matmul(reshape(filters.back(), {config_.conv.out, config_.rank_out}), columns);
}

}  // namespace tessera
