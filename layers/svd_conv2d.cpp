#include "layers/svd_conv2d.h"

#include "core/config/read.h"
#include "core/ops/matmul.h"
#include "core/ops/view.h"
#include "core/support/error.h"

namespace tessera {
namespace {

const SvdConv2dConfig& checked(const SvdConv2dConfig& config) {
  TESSERA_CHECK((config.conv.kernel == Extent{1, 1}), ConfigError, "svd_conv2d: kernel is ", config.conv.kernel, "; needs 1x1");
  check_ranks("", "svd_conv2d", svd_rank_problems(config.conv.out, config.conv.in, config.rank));
  return config;
}

}  // namespace

void SvdConv2dConfig::fields(Fields& f) {
  conv.window_fields(f);
  f.require((conv.kernel == Extent{1, 1}), "kernel", "svd needs 1x1");
  f.add("rank", rank, {.help = "channels between the factors", .range = at_least(1), .example = "32", .observable = "plan"});
  conv.bias_field(f);
  batch_norm_field(f, batch_norm);
  for (const RankProblem& problem : svd_rank_problems(conv.out, conv.in, rank)) f.require(false, problem.rank, problem.message);
}

SvdConv2d::SvdConv2d(const SvdConv2dConfig& config)
    : FactoredConv2d("svd_conv2d", config.conv, config.batch_norm), config_(checked(config)) {
  add_filter("in_factor", {config.rank, 1, 1, config.conv.in}, {.stride = config.conv.stride, .padding = config.conv.padding});
  add_filter("out_factor", {config.conv.out, 1, 1, config.rank}, {}, 2);
  add_bias();
}

Value SvdConv2d::config() const { return without_default_norm(write(config_)); }

std::unique_ptr<FactoredConv2d> SvdConv2d::with(const Conv2dConfig& conv) const {
  return std::make_unique<SvdConv2d>(SvdConv2dConfig{.conv = conv, .rank = config_.rank});
}

Var SvdConv2d::composed(std::span<const Var> filters) const {
  return matmul(reshape(filters[1], {config_.conv.out, config_.rank}), reshape(filters[0], {config_.rank, config_.conv.in}));
}

}  // namespace tessera
