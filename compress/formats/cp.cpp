#include "compress/formats/cp.h"

#include "compress/formats/factored_conv.h"
#include "core/linalg/tucker.h"
#include "core/support/error.h"
#include "layers/cp_conv2d.h"

namespace tessera {
namespace {

constexpr std::string_view kKinds[]{"conv2d"};
constexpr RankName kNames[]{{"rank", "rank of the weight", "32"}};

CpFilters filters_of(const Factors& factors) {
  return {.in_factor = factors.at(0), .vertical = factors.at(1), .horizontal = factors.at(2), .out_factor = factors.at(3)};
}

}  // namespace

std::span<const std::string_view> CpFormat::kinds() const { return kKinds; }
std::span<const RankName> CpFormat::rank_names() const { return kNames; }

std::string CpFormat::why_not(const DenseLayer& layer) const {
  if (!is_form_of(*this, *layer.module)) return str("is a ", layer.module->kind(), "; cp factors conv2d");
  if (layer.groups != 1) return str("has ", layer.groups, " groups; cp needs 1");
  if (layer.taps() == 1) return "has a 1x1 kernel; cp needs a larger one";
  return "";
}

std::vector<std::int64_t> CpFormat::largest_ranks(const DenseLayer& layer) const {
  return {largest_cp_rank(layer.out, layer.kernel, layer.in)};
}

std::vector<RankProblem> CpFormat::rank_problems(const DenseLayer& layer, const Ranks& ranks) const {
  return cp_rank_problems({.in = layer.in, .out = layer.out, .kernel = layer.kernel}, rank_of(ranks, "rank"));
}

Ranks CpFormat::legal_ranks(const DenseLayer&, Ranks ranks) const { return ranks; }

FormatCost CpFormat::cost(const DenseLayer& layer, const Ranks& ranks) const {
  const std::int64_t rank = rank_of(ranks, "rank");
  FormatCost cost{.parameters = rank * (layer.in + layer.out) + layer.bias_parameters(),
                  .macs = rank * layer.in * layer.input_positions(),
                  .activations = rank * layer.input_positions()};
  const auto add = [&](std::int64_t taps, std::int64_t positions) {
    if (taps == 1) return;
    cost.parameters += rank * taps;
    cost.macs += rank * taps * positions;
    cost.activations += rank * positions;
  };
  // The last of the two has what is left of the stride.
  const std::int64_t columns = layer.kernel.w > 1 ? layer.input.w : layer.output.w;
  add(layer.kernel.h, layer.output.h * columns);
  add(layer.kernel.w, layer.output_positions());
  cost.macs += rank * layer.out * layer.output_positions();
  return cost;
}

std::vector<std::vector<double>> CpFormat::spectra(const Tensor& weight) const {
  const Tensor matrix = weight.reshape({weight.dim(0) * weight.dim(1), weight.dim(2) * weight.dim(3)});
  return {linalg::mode_spectrum(matrix, matrix.dim(0) <= matrix.dim(1) ? 0 : 1)};
}

Factors CpFormat::project(const Tensor& weight, const Ranks& ranks, const ProjectOptions& options, const Factors* start) const {
  CpFilters given;
  if (start != nullptr) given = filters_of(*start);
  const CpFilters filters =
      cp_project(weight, rank_of(ranks, "rank"), {.max_iterations = options.iterations, .tolerance = options.tolerance},
                 start != nullptr ? &given : nullptr);
  return {filters.in_factor, filters.vertical, filters.horizontal, filters.out_factor};
}

Tensor CpFormat::compose(const Factors& factors, const Shape& weight) const { return cp_compose(filters_of(factors), weight); }

std::unique_ptr<Module> CpFormat::layer(const DenseLayer& dense, const Ranks& ranks, const Factors* factors) const {
  check_ranks(dense.path, "conv2d", rank_problems(dense, ranks));
  return factored_conv<CpConv2d>(dense, {.conv = conv_of(dense), .rank = rank_of(ranks, "rank")}, factors);
}

}  // namespace tessera
