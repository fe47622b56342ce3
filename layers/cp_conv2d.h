// A convolution whose weight is in CP form, a sum of `rank` products of one vector for each mode (Lebedev et al., ICLR 2015,
// "Speeding-up convolutional neural networks using fine-tuned CP-decomposition"):
// W[o, y, x, i] = sum_r out_factor[o, r] vertical[r, y] horizontal[r, x] in_factor[r, i]. Forward is 1x1, kh x 1 of each channel
// by itself, 1 x kw likewise, 1x1, with nothing in between; the two in the middle carry stride, padding and dilation of their
// own direction. A kernel of one row or column needs no vertical or horizontal filter.
#pragma once

#include "core/config/fields.h"
#include "core/linalg/cp.h"
#include "layers/factored_conv2d.h"

namespace tessera {

struct CpConv2dConfig {
  Conv2dConfig conv;  // of one group
  std::int64_t rank = 1;
  bool batch_norm = false;  // layers/factored_conv2d.h
  void fields(Fields& f);
};

// A rank is at most the product of all modes except the largest one: no weight needs more.
std::vector<RankProblem> cp_rank_problems(const Conv2dConfig& conv, std::int64_t rank);
std::int64_t largest_cp_rank(std::int64_t out, Extent kernel, std::int64_t in);

// The filters that approximate a weight [out, kh, kw, in], in the layer's order. The iteration begins from the filters of
// `start`, or from a start of its own (core/linalg/cp.h). A vertical or horizontal filter of size 1 is left undefined. Computed
// in double on the host. Throws NumericError on NaN or Inf.
struct CpFilters {
  Tensor in_factor;   // [rank, in]
  Tensor vertical;    // [rank, kh]
  Tensor horizontal;  // [rank, kw]
  Tensor out_factor;  // [out, rank]
};
CpFilters cp_project(const Tensor& weight, std::int64_t rank, const linalg::CpOptions& options = {},
                     const CpFilters* start = nullptr);
Tensor cp_compose(const CpFilters& filters, const Shape& weight);

// Parameters: in_factor [rank, 1, 1, in], vertical [rank, kh, 1, 1], horizontal [rank, 1, kw, 1], out_factor [out, 1, 1, rank],
// bias [out].
class CpConv2d final : public FactoredConv2d {
 public:
  using Config = CpConv2dConfig;
  explicit CpConv2d(const CpConv2dConfig& config);  // throws ConfigError on an invalid rank

  std::string_view kind() const override { return "cp_conv2d"; }
  Value config() const override;
  Ranks ranks() const override { return {{"rank", config_.rank}}; }

 private:
  Var composed(std::span<const Var> filters) const override;
  std::unique_ptr<FactoredConv2d> with(const Conv2dConfig& conv) const override;

  CpConv2dConfig config_;
};

}  // namespace tessera
