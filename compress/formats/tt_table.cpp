#include "compress/formats/tt_table.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/linalg/tt.h"
#include "core/support/counting.h"
#include "core/support/error.h"
#include "layers/embedding.h"
#include "layers/tt_embedding.h"

namespace tessera {
namespace {

constexpr std::string_view kKinds[]{"embedding"};

}  // namespace

TtTable::TtTable(std::span<const RankName> rank_names, ModesConfig modes) : rank_names_(rank_names), modes_(std::move(modes)) {}

std::span<const std::string_view> TtTable::kinds() const { return kKinds; }

ModeSplit TtTable::split(std::int64_t vocabulary, std::int64_t width) const {
  ModeSplit modes = split_modes(modes_, vocabulary, width);
  if (modes_.out.empty()) modes.out = padded_modes(vocabulary, std::ssize(modes.in));
  return modes;
}

Modes TtTable::train_modes(const DenseLayer& layer) const {
  const ModeSplit modes = split(layer.out, layer.in);
  return paired_modes(modes.out, modes.in);
}

std::string TtTable::why_not(const DenseLayer& layer) const {
  const ModeSplit modes = split(layer.out, layer.in);
  const std::int64_t rows = product_of(modes.out);
  const std::string all = str("has ", layer.out, " rows; its modes ", to_text(modes.out), " multiply to ", rows);
  if (rows < layer.out) return str(all, ", which are too few");
  if (rows - layer.out > layer.out) return str(all, ", more than twice as many");
  if (std::ranges::find(modes.out, 1) != modes.out.end()) {
    return str("has ", layer.out, " rows, which do not split into ", modes.out.size(), " modes above 1");
  }
  return why_not_into(modes.in, layer.in, "features in a row");
}

std::vector<std::int64_t> TtTable::largest_ranks(const DenseLayer& layer) const { return largest_tt_ranks(train_modes(layer)); }

std::vector<RankProblem> TtTable::rank_problems(const DenseLayer& layer, const Ranks& ranks) const {
  return tt_rank_problems(train_modes(layer), ranks);
}

Ranks TtTable::legal_ranks(const DenseLayer& layer, Ranks ranks) const {
  return legal_tt_ranks(train_modes(layer), std::move(ranks));
}

FormatCost TtTable::cost(const DenseLayer& layer, const Ranks& ranks) const {
  const std::vector<std::int64_t> values = values_of(ranks);
  FormatCost cost;
  for (const Shape& core : core_shapes(train_modes(layer), values)) cost.parameters += core.numel();
  const TtRowCost row = tt_row_cost(split(layer.out, layer.in).in, values);
  cost.macs = row.macs * layer.output_positions();
  cost.activations = row.kept * layer.output_positions();
  return cost;
}

Tensor TtTable::padded_tensor(const Tensor& weight) const {
  const ModeSplit modes = split(weight.dim(0), weight.dim(1));
  const Tensor padded = Tensor::zeros({product_of(modes.out), weight.dim(1)}, weight.dtype(), weight.device());
  padded.slice(0, 0, weight.dim(0)).copy_from(weight);
  return tt_tensor(padded, modes.out, modes.in);
}

std::vector<std::vector<double>> TtTable::spectra(const Tensor& weight) const {
  return linalg::tt_spectra(padded_tensor(weight));
}

Factors TtTable::project(const Tensor& weight, const Ranks& ranks, const ProjectOptions&, const Factors*) const {
  return linalg::tt_svd(padded_tensor(weight), values_of(ranks)).cores;
}

Tensor TtTable::compose(const Factors& factors, const Shape& weight) const {
  const ModeSplit modes = split(weight[0], weight[1]);
  return tt_matrix(linalg::reconstruct({factors}), modes.out, modes.in).slice(0, 0, weight[0]).contiguous();
}

std::unique_ptr<Module> TtTable::layer(const DenseLayer& dense, const Ranks& ranks, const Factors* factors) const {
  check_ranks(dense.path, std::string(dense.module->kind()), rank_problems(dense, ranks));
  const ModeSplit modes = split(dense.out, dense.in);
  auto made = std::make_unique<TtEmbedding>(TtEmbeddingConfig{.vocabulary = dense.out,
                                                              .width = dense.in,
                                                              .vocabulary_modes = modes.out,
                                                              .width_modes = modes.in,
                                                              .ranks = values_of(ranks)});
  made->take_traits(dynamic_cast<const Embedding&>(*dense.module));
  if (factors != nullptr) made->set_cores(*factors);
  return made;
}

}  // namespace tessera
