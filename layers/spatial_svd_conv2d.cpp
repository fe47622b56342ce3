#include "layers/spatial_svd_conv2d.h"

#include "core/config/read.h"
#include "core/ops/matmul.h"
#include "core/ops/view.h"
#include "core/support/counting.h"

namespace tessera {
namespace {

const SpatialSvdConv2dConfig& checked(const SpatialSvdConv2dConfig& config) {
  check_ranks("", "spatial_svd_conv2d", spatial_svd_rank_problems(config.conv, config.rank));
  return config;
}

}  // namespace

Tensor spatial_matrix(const Tensor& weight) {
  const Shape& shape = weight.shape();
  return weight.permute({0, 2, 1, 3}).contiguous().reshape({shape[0] * shape[2], shape[1] * shape[3]});
}

Tensor spatial_weight(const Tensor& matrix, const Shape& weight) {
  return matrix.reshape({weight[0], weight[2], weight[1], weight[3]}).permute({0, 2, 1, 3}).contiguous();
}

std::vector<RankProblem> spatial_svd_rank_problems(const Conv2dConfig& conv, std::int64_t rank) {
  return svd_rank_problems(product_of({conv.out, conv.kernel.w}), product_of({conv.kernel.h, conv.in}), rank);
}

void SpatialSvdConv2dConfig::fields(Fields& f) {
  conv.window_fields(f);
  f.add("rank", rank, {.help = "channels between the factors", .range = at_least(1), .example = "32", .observable = "plan"});
  conv.bias_field(f);
  batch_norm_field(f, batch_norm);
  for (const RankProblem& problem : spatial_svd_rank_problems(conv, rank)) f.require(false, problem.rank, problem.message);
}

SpatialSvdConv2d::SpatialSvdConv2d(const SpatialSvdConv2dConfig& config)
    : FactoredConv2d("spatial_svd_conv2d", config.conv, config.batch_norm), config_(checked(config)) {
  const Conv2dConfig& conv = config.conv;
  add_filter("in_factor", {config.rank, conv.kernel.h, 1, conv.in},
             {.stride = {conv.stride.h, 1}, .padding = {conv.padding.h, 0}, .dilation = {conv.dilation.h, 1}});
  add_filter("out_factor", {conv.out, 1, conv.kernel.w, config.rank},
             {.stride = {1, conv.stride.w}, .padding = {0, conv.padding.w}, .dilation = {1, conv.dilation.w}}, 2);
  add_bias();
}

Value SpatialSvdConv2d::config() const { return without_default_norm(write(config_)); }

std::unique_ptr<FactoredConv2d> SpatialSvdConv2d::with(const Conv2dConfig& conv) const {
  return std::make_unique<SpatialSvdConv2d>(SpatialSvdConv2dConfig{.conv = conv, .rank = config_.rank});
}

Var SpatialSvdConv2d::composed(std::span<const Var> filters) const {
  const Conv2dConfig& conv = config_.conv;
  const Var product = matmul(reshape(filters[1], {conv.out * conv.kernel.w, config_.rank}),
                             reshape(filters[0], {config_.rank, conv.kernel.h * conv.in}));
  return permute(reshape(product, {conv.out, conv.kernel.w, conv.kernel.h, conv.in}), {0, 2, 1, 3});
}

}  // namespace tessera
