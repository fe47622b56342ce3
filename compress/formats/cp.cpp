#include "compress/formats/cp.h"

#include "compress/formats/factored_conv.h"
#include "core/linalg/tucker.h"
#include "core/support/error.h"
#include "layers/cp_conv2d.h"

namespace tessera {
namespace {

CpFilters filters_of(const Factors& factors) {
  return {.in_factor = factors.at(0), .vertical = factors.at(1), .horizontal = factors.at(2), .out_factor = factors.at(3)};
}

class CpFormat final : public LargerConvFormat {
 public:
  std::string_view name() const override { return "cp"; }
  std::span<const RankName> rank_names() const override { return kSingleRank; }
  bool sweeps() const override { return true; }
  bool ends_in_input_channels() const override { return true; }

  std::vector<std::int64_t> largest_ranks(const DenseLayer& layer) const override {
    return {largest_cp_rank(layer.out, layer.kernel, layer.in)};
  }

  std::vector<RankProblem> rank_problems(const DenseLayer& layer, const Ranks& ranks) const override {
    return cp_rank_problems({.in = layer.in, .out = layer.out, .kernel = layer.kernel}, rank_of(ranks, "rank"));
  }

  FormatCost cost(const DenseLayer& layer, const Ranks& ranks) const override {
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
    // If a horizontal filter follows, the vertical one has only the stride of rows, so the columns are still the input's.
    const std::int64_t columns = layer.kernel.w > 1 ? layer.input.w : layer.output.w;
    add(layer.kernel.h, layer.output.h * columns);
    add(layer.kernel.w, layer.output_positions());
    cost.macs += rank * layer.out * layer.output_positions();
    return cost;
  }

  std::vector<std::vector<double>> spectra(const Tensor& weight) const override {
    const Tensor matrix = weight.reshape({weight.dim(0) * weight.dim(1), weight.dim(2) * weight.dim(3)});
    return {linalg::mode_spectrum(matrix, matrix.dim(0) <= matrix.dim(1) ? 0 : 1)};
  }

  bool spectra_tell_errors() const override { return false; }

  Factors project(const Tensor& weight, const Ranks& ranks, const ProjectOptions& options, const Factors* start) const override {
    CpFilters given;
    if (start != nullptr) given = filters_of(*start);
    const CpFilters filters =
        cp_project(weight, rank_of(ranks, "rank"), {.max_iterations = options.iterations, .tolerance = options.tolerance},
                   start != nullptr ? &given : nullptr);
    return {filters.in_factor, filters.vertical, filters.horizontal, filters.out_factor};
  }

  Tensor compose(const Factors& factors, const Shape& weight) const override {
    return cp_compose(filters_of(factors), weight);
  }

  std::unique_ptr<Module> layer(const DenseLayer& dense, const Ranks& ranks, const Factors* factors) const override {
    check_ranks(dense.path, "conv2d", rank_problems(dense, ranks));
    return factored_conv<CpConv2d>(dense, {.conv = conv_of(dense), .rank = rank_of(ranks, "rank")}, factors);
  }
};

}  // namespace

const Format& cp_format() {
  static const CpFormat format;
  return format;
}

}  // namespace tessera
