// Tucker-2 on the channel modes of a convolution's weight (Kim et al., ICLR 2016; layers/tucker2_conv2d.h).
// Ranks: out, in; r_out <= taps r_in and r_in <= taps r_out. Factors: in_factor [r_in, in], core [r_out, kh, kw, r_in],
// out_factor [out, r_out]; a mode of full rank has none.
#pragma once

#include "compress/formats/format.h"

namespace tessera {

class Tucker2Format final : public Format {
 public:
  std::string_view name() const override { return "tucker2"; }
  std::span<const std::string_view> kinds() const override;
  std::span<const RankName> rank_names() const override;
  bool sweeps() const override { return true; }  // HOOI

  std::string why_not(const DenseLayer& layer) const override;
  std::vector<std::int64_t> largest_ranks(const DenseLayer& layer) const override;
  std::vector<RankProblem> rank_problems(const DenseLayer& layer, const Ranks& ranks) const override;
  Ranks legal_ranks(const DenseLayer& layer, Ranks ranks) const override;
  FormatCost cost(const DenseLayer& layer, const Ranks& ranks) const override;
  std::vector<std::vector<double>> spectra(const Tensor& weight) const override;  // of the unfoldings along out and in
  Factors project(const Tensor& weight, const Ranks& ranks, const ProjectOptions& options = {},
                  const Factors* start = nullptr) const override;
  Tensor compose(const Factors& factors, const Shape& weight) const override;
  std::unique_ptr<Module> layer(const DenseLayer& dense, const Ranks& ranks, const Factors* factors = nullptr) const override;
};

}  // namespace tessera
