#include "compress/formats/spatial_svd.h"

#include <algorithm>

#include "compress/formats/factored_conv.h"
#include "core/linalg/tucker.h"
#include "core/support/error.h"
#include "layers/spatial_svd_conv2d.h"

namespace tessera {
namespace {

constexpr std::string_view kKinds[]{"conv2d"};
constexpr RankName kNames[]{{"rank", "rank of the weight", "32"}};

}  // namespace

std::span<const std::string_view> SpatialSvdFormat::kinds() const { return kKinds; }
std::span<const RankName> SpatialSvdFormat::rank_names() const { return kNames; }

std::string SpatialSvdFormat::why_not(const DenseLayer& layer) const {
  if (!is_form_of(*this, *layer.module)) return str("is a ", layer.module->kind(), "; spatial_svd factors conv2d");
  if (layer.groups != 1) return str("has ", layer.groups, " groups; spatial_svd needs 1");
  if (layer.taps() == 1) return "has a 1x1 kernel; spatial_svd needs a larger one";
  return "";
}

std::vector<std::int64_t> SpatialSvdFormat::largest_ranks(const DenseLayer& layer) const {
  return {std::min(layer.out * layer.kernel.w, layer.kernel.h * layer.in)};
}

std::vector<RankProblem> SpatialSvdFormat::rank_problems(const DenseLayer& layer, const Ranks& ranks) const {
  return svd_rank_problems(layer.out * layer.kernel.w, layer.kernel.h * layer.in, rank_of(ranks, "rank"));
}

Ranks SpatialSvdFormat::legal_ranks(const DenseLayer&, Ranks ranks) const { return ranks; }

FormatCost SpatialSvdFormat::cost(const DenseLayer& layer, const Ranks& ranks) const {
  const std::int64_t rank = rank_of(ranks, "rank");
  const std::int64_t between = layer.output.h * layer.input.w;  // the first factor has the stride of rows
  const std::int64_t in_factor = rank * layer.kernel.h * layer.in;
  const std::int64_t out_factor = rank * layer.kernel.w * layer.out;
  return {.parameters = in_factor + out_factor + layer.bias_parameters(),
          .macs = in_factor * between + out_factor * layer.output_positions(),
          .activations = rank * between};
}

std::vector<std::vector<double>> SpatialSvdFormat::spectra(const Tensor& weight) const {
  return {linalg::mode_spectrum(spatial_matrix(weight), 0)};
}

Factors SpatialSvdFormat::project(const Tensor& weight, const Ranks& ranks, const ProjectOptions&, const Factors*) const {
  const SvdFactors factors = svd_project(spatial_matrix(weight), rank_of(ranks, "rank"));
  return {factors.in_factor, factors.out_factor};
}

Tensor SpatialSvdFormat::compose(const Factors& factors, const Shape& weight) const {
  return spatial_weight(svd_compose({.out_factor = factors.at(1), .in_factor = factors.at(0)}), weight);
}

std::unique_ptr<Module> SpatialSvdFormat::layer(const DenseLayer& dense, const Ranks& ranks, const Factors* factors) const {
  check_ranks(dense.path, "conv2d", rank_problems(dense, ranks));
  return factored_conv<SpatialSvdConv2d>(dense, {.conv = conv_of(dense), .rank = rank_of(ranks, "rank")}, factors);
}

}  // namespace tessera
