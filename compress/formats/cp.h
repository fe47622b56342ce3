// The CP decomposition of a convolution's weight by proximal alternating least squares (Lebedev et al., ICLR 2015;
// layers/cp_conv2d.h, core/linalg/cp.h). Rank: rank <= out kh kw in / the largest of these. Factors: in_factor [rank, in], vertical
// [rank, kh], horizontal [rank, kw], out_factor [out, rank]; of a kernel of one row or column the vertical or horizontal one is
// left out. Its spectrum is that of the matrix [out kh, kw in]: no CP of rank r comes nearer than the values beyond the first r.
#pragma once

#include "compress/formats/format.h"

namespace tessera {

class CpFormat final : public Format {
 public:
  std::string_view name() const override { return "cp"; }
  std::span<const std::string_view> kinds() const override;
  std::span<const RankName> rank_names() const override;
  bool sweeps() const override { return true; }

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
