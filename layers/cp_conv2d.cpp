#include "layers/cp_conv2d.h"

#include <algorithm>

#include "core/config/read.h"
#include "core/ops/arithmetic.h"
#include "core/ops/matmul.h"
#include "core/ops/view.h"
#include "core/support/counting.h"
#include "core/support/error.h"

namespace tessera {
namespace {

const CpConv2dConfig& checked(const CpConv2dConfig& config) {
  check_ranks("", "cp_conv2d", cp_rank_problems(config.conv, config.rank));
  return config;
}

Tensor transposed(const Tensor& matrix) { return matrix.permute({1, 0}).contiguous(); }

// The factors [n_mode, rank] of the defined filters, for the modes out, kh, kw, in.
linalg::Cp cp_of(const CpFilters& filters) {
  linalg::Cp cp{{filters.out_factor}};
  for (const Tensor& filter : {filters.vertical, filters.horizontal, filters.in_factor}) {
    if (filter.defined()) cp.factors.push_back(transposed(filter));
  }
  return cp;
}

}  // namespace

std::int64_t largest_cp_rank(std::int64_t out, Extent kernel, std::int64_t in) {
  return product_of({out, kernel.h, kernel.w, in}) / std::max({out, kernel.h, kernel.w, in});
}

std::vector<RankProblem> cp_rank_problems(const Conv2dConfig& conv, std::int64_t rank) {
  const std::int64_t largest = largest_cp_rank(conv.out, conv.kernel, conv.in);
  if (rank >= 1 && rank <= largest) return {};
  return {{"rank", str("rank is ", rank, ", the weight is ", conv.out, " x ", conv.kernel, " x ", conv.in,
                       "; legal range is 1..", largest)}};
}

CpFilters cp_project(const Tensor& weight, std::int64_t rank, const linalg::CpOptions& options, const CpFilters* start) {
  const bool vertical = weight.dim(1) > 1, horizontal = weight.dim(2) > 1;
  Shape modes{weight.dim(0)};
  if (vertical) modes = modes.append(weight.dim(1));
  if (horizontal) modes = modes.append(weight.dim(2));
  linalg::Cp given;
  if (start != nullptr) given = cp_of(*start);
  const linalg::Cp cp =
      linalg::cp_als(weight.reshape(modes.append(weight.dim(3))), rank, options, start != nullptr ? &given : nullptr);
  CpFilters filters{.in_factor = transposed(cp.factors.back()), .vertical = {}, .horizontal = {}, .out_factor = cp.factors[0]};
  if (vertical) filters.vertical = transposed(cp.factors[1]);
  if (horizontal) filters.horizontal = transposed(cp.factors[vertical ? 2 : 1]);
  return filters;
}

Tensor cp_compose(const CpFilters& filters, const Shape& weight) { return linalg::reconstruct(cp_of(filters)).reshape(weight); }

void CpConv2dConfig::fields(Fields& f) {
  conv.window_fields(f);
  f.add("rank", rank, {.help = "channels between the factors", .range = at_least(1), .example = "32", .observable = "plan"});
  conv.bias_field(f);
  batch_norm_field(f, batch_norm);
  for (const RankProblem& problem : cp_rank_problems(conv, rank)) f.require(false, problem.rank, problem.message);
}

CpConv2d::CpConv2d(const CpConv2dConfig& config)
    : FactoredConv2d("cp_conv2d", config.conv, config.batch_norm), config_(checked(config)) {
  const Conv2dConfig& conv = config.conv;
  const std::int64_t rank = config.rank;
  const bool vertical = conv.kernel.h > 1, horizontal = conv.kernel.w > 1;
  // If a direction has no filter, the other direction's filter takes its stride and padding; if neither has, out_factor does.
  Conv2dOptions rows{
      .stride = {conv.stride.h, 1}, .padding = {conv.padding.h, 0}, .dilation = {conv.dilation.h, 1}, .groups = rank};
  Conv2dOptions columns{
      .stride = {1, conv.stride.w}, .padding = {0, conv.padding.w}, .dilation = {1, conv.dilation.w}, .groups = rank};
  Conv2dOptions last;
  if (!vertical) {
    (horizontal ? columns : last).stride.h = conv.stride.h;
    (horizontal ? columns : last).padding.h = conv.padding.h;
  }
  if (!horizontal) {
    (vertical ? rows : last).stride.w = conv.stride.w;
    (vertical ? rows : last).padding.w = conv.padding.w;
  }
  add_filter("in_factor", {rank, 1, 1, conv.in});
  if (vertical) add_filter("vertical", {rank, conv.kernel.h, 1, 1}, rows);
  if (horizontal) add_filter("horizontal", {rank, 1, conv.kernel.w, 1}, columns);
  add_filter("out_factor", {conv.out, 1, 1, rank}, last, 2);
  add_bias();
}

Value CpConv2d::config() const { return without_default_norm(write(config_)); }

std::unique_ptr<FactoredConv2d> CpConv2d::with(const Conv2dConfig& conv) const {
  return std::make_unique<CpConv2d>(CpConv2dConfig{.conv = conv, .rank = config_.rank});
}

Var CpConv2d::composed(std::span<const Var> filters) const {
  const Var& out_factor = filters.back();
  Var weight = filters.front();  // [rank, 1, 1, in], times [rank, kh, 1, 1] and [rank, 1, kw, 1]
  for (const Var& filter : filters.subspan(1, filters.size() - 2)) weight = mul(filter, weight);
  return matmul(reshape(out_factor, {config_.conv.out, config_.rank}),
                reshape(weight, {config_.rank, weight.shape().numel() / config_.rank}));
}

}  // namespace tessera
