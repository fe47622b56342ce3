// The truncated singular value decomposition of a linear layer's weight, or of a 1x1 convolution's (layers/svd_factors.h).
// Rank: rank <= min(out, in). Factors: in_factor [rank, in], out_factor [out, rank].
#pragma once

#include "compress/formats/format.h"

namespace tessera {

class SvdFormat final : public Format {
 public:
  std::string_view name() const override { return "svd"; }
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
