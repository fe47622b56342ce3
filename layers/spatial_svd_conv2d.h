// A convolution whose weight is separable over height and width with `rank` channels between: a kh x 1 convolution, then a
// 1 x kw one, with nothing in between (Jaderberg, Vedaldi & Zisserman, BMVC 2014):
// W[o, y, x, i] = sum_r out_factor[o, x, r] in_factor[r, y, i]. Each carries stride, padding and dilation of its own direction.
#pragma once

#include "core/config/fields.h"
#include "layers/factored_conv2d.h"
#include "layers/svd_factors.h"

namespace tessera {

struct SpatialSvdConv2dConfig {
  Conv2dConfig conv;  // of one group
  std::int64_t rank = 1;
  bool batch_norm = false;  // layers/factored_conv2d.h
  void fields(Fields& f);
};

// The weight [out, kh, kw, in] as the matrix [out kw, kh in] that the factors decompose, and back.
Tensor spatial_matrix(const Tensor& weight);
Tensor spatial_weight(const Tensor& matrix, const Shape& weight);

// 1 <= rank <= min(out kw, kh in).
std::vector<RankProblem> spatial_svd_rank_problems(const Conv2dConfig& conv, std::int64_t rank);

// Parameters: in_factor [rank, kh, 1, in], out_factor [out, 1, kw, rank], bias [out].
class SpatialSvdConv2d final : public FactoredConv2d {
 public:
  using Config = SpatialSvdConv2dConfig;
  explicit SpatialSvdConv2d(const SpatialSvdConv2dConfig& config);  // throws ConfigError on an invalid rank

  std::string_view kind() const override { return "spatial_svd_conv2d"; }
  Value config() const override;
  Ranks ranks() const override { return {{"rank", config_.rank}}; }

 private:
  Var composed(std::span<const Var> filters) const override;
  std::unique_ptr<FactoredConv2d> with(const Conv2dConfig& conv) const override;

  SpatialSvdConv2dConfig config_;
};

}  // namespace tessera
