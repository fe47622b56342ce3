// Tensor trains (Oseledets, SISC 2011; core/linalg/tt.h): of a convolution's weight over modes of its output channels, kh kw, and
// modes of its input channels (layers/tt_conv2d.h); of a linear layer's over pairs of modes (layers/tt_linear.h). Ranks: r1, r2, ...,
// one between each two modes; r_k <= r_(k-1) n_k and r_k <= n_(k+1) r_(k+1). Factors: the cores.
#pragma once

#include "compress/formats/format.h"
#include "layers/tt_modes.h"

namespace tessera {

class TtFormat final : public Format {
 public:
  explicit TtFormat(ModesConfig modes = {}) : modes_(std::move(modes)) {}

  std::string_view name() const override { return "tt"; }
  std::span<const std::string_view> kinds() const override;
  std::span<const RankName> rank_names() const override;  // of the longest train; a layer has the first of them
  std::size_t fewest_ranks() const override { return 1; }
  bool sweeps() const override { return false; }
  std::unique_ptr<Format> with_modes(const ModesConfig& modes) const override { return std::make_unique<TtFormat>(modes); }

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

 private:
  struct Split {
    Modes out, in;
  };
  Split split(std::int64_t out, std::int64_t in) const;
  Modes train_modes(const Shape& weight) const;
  Modes train_modes(const DenseLayer& layer) const;

  ModesConfig modes_;
};

}  // namespace tessera
