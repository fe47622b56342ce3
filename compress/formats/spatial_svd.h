// A convolution's weight separated over height and width (Jaderberg et al., BMVC 2014; layers/spatial_svd_conv2d.h): the singular
// value decomposition of the matrix [out kw, kh in]. Rank: rank <= min(out kw, kh in). Factors: in_factor [rank, kh in],
// out_factor [out kw, rank].
#pragma once

#include "compress/formats/format.h"

namespace tessera {

class SpatialSvdFormat final : public Format {
 public:
  std::string_view name() const override { return "spatial_svd"; }
  std::span<const std::string_view> kinds() const override;
  std::span<const RankName> rank_names() const override;
  bool sweeps() const override { return false; }

  std::string why_not(const DenseLayer& layer) const override;
  std::vector<std::int64_t> largest_ranks(const DenseLayer& layer) const override;
  std::vector<RankProblem> rank_problems(const DenseLayer& layer, const Ranks& ranks) const override;
  Ranks legal_ranks(const DenseLayer& layer, Ranks ranks) const override;
  FormatCost cost(const DenseLayer& layer, const Ranks& ranks) const override;
  std::vector<std::vector<double>> spectra(const Tensor& weight) const override;
  Factors project(const Tensor& weight, const Ranks& ranks, const ProjectOptions& options = {},
                  const Factors* start = nullptr) const override;
  Tensor compose(const Factors& factors, const Shape& weight) const override;
  std::unique_ptr<Module> layer(const DenseLayer& dense, const Ranks& ranks, const Factors* factors = nullptr) const override;
};

}  // namespace tessera
