// Tensor trains of tables, an embedding's weight [vocabulary, width], over pairs of modes (layers/tt_embedding.h). The modes of
// the vocabulary may multiply to more than it is: decompositions see rows of zeros behind the last, which no look-up reads. Their
// bound on the error holds with these rows, so without them too. Factors: the cores. The form `tt` holds embeddings in this way.
#pragma once

#include <span>

#include "compress/formats/mode_split.h"

namespace tessera {

class TtTable final : public Format {
 public:
  TtTable(std::span<const RankName> rank_names, ModesConfig modes);

  std::string_view name() const override { return "tt"; }
  std::span<const std::string_view> kinds() const override;
  std::span<const RankName> rank_names() const override { return rank_names_; }
  std::size_t fewest_ranks() const override { return 1; }
  bool lowers_macs() const override { return false; }  // there were none

  std::string why_not(const DenseLayer& layer) const override;
  std::vector<std::int64_t> largest_ranks(const DenseLayer& layer) const override;
  std::vector<RankProblem> rank_problems(const DenseLayer& layer, const Ranks& ranks) const override;
  Ranks legal_ranks(const DenseLayer& layer, Ranks ranks) const override;
  FormatCost cost(const DenseLayer& layer, const Ranks& ranks) const override;
  std::vector<std::vector<double>> spectra(const Tensor& weight) const override;
  Factors project(const Tensor& weight, const Ranks& ranks, const ProjectOptions& options, const Factors* start) const override;
  Tensor compose(const Factors& factors, const Shape& weight) const override;
  std::unique_ptr<Module> layer(const DenseLayer& dense, const Ranks& ranks, const Factors* factors) const override;

 private:
  ModeSplit split(std::int64_t vocabulary, std::int64_t width) const;
  Modes train_modes(const DenseLayer& layer) const;
  Tensor padded_tensor(const Tensor& weight) const;  // that the cores decompose

  std::span<const RankName> rank_names_;
  ModesConfig modes_;
};

}  // namespace tessera
