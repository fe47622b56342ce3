#include "compress/formats/spatial_svd.h"

#include <algorithm>

#include "compress/formats/factored_conv.h"
#include "core/linalg/tucker.h"
#include "core/support/error.h"
#include "layers/spatial_svd_conv2d.h"

namespace tessera {
namespace {

class SpatialSvdFormat final : public LargerConvFormat {
 public:
  std::string_view name() const override { return "spatial_svd"; }
  std::span<const RankName> rank_names() const override { return kSingleRank; }
  bool randomises() const override { return true; }
  bool ends_in_input_channels() const override { return true; }

  std::vector<std::int64_t> largest_ranks(const DenseLayer& layer) const override {
    return {std::min(layer.out * layer.kernel.w, layer.kernel.h * layer.in)};
  }

  std::vector<RankProblem> rank_problems(const DenseLayer& layer, const Ranks& ranks) const override {
    return svd_rank_problems(layer.out * layer.kernel.w, layer.kernel.h * layer.in, rank_of(ranks, "rank"));
  }

  FormatCost cost(const DenseLayer& layer, const Ranks& ranks) const override {
    const std::int64_t rank = rank_of(ranks, "rank");
    const std::int64_t between = layer.output.h * layer.input.w;  // the first factor has only the stride of rows
    const std::int64_t in_factor = rank * layer.kernel.h * layer.in;
    const std::int64_t out_factor = rank * layer.kernel.w * layer.out;
    return {.parameters = in_factor + out_factor + layer.bias_parameters(),
            .macs = in_factor * between + out_factor * layer.output_positions(),
            .activations = rank * between};
  }

  std::vector<std::vector<double>> spectra(const Tensor& weight) const override {
    const Tensor matrix = spatial_matrix(weight);
    return {linalg::mode_spectrum(matrix, matrix.dim(0) <= matrix.dim(1) ? 0 : 1)};
  }

  Factors project(const Tensor& weight, const Ranks& ranks, const ProjectOptions& options,
                  const Factors*) const override {
    const SvdFactors factors = svd_project(spatial_matrix(weight), rank_of(ranks, "rank"), options.randomised);
    return {factors.in_factor, factors.out_factor};
  }

  Tensor compose(const Factors& factors, const Shape& weight) const override {
    return spatial_weight(svd_compose({.out_factor = factors.at(1), .in_factor = factors.at(0)}), weight);
  }

  std::unique_ptr<Module> layer(const DenseLayer& dense, const Ranks& ranks, const Factors* factors) const override {
    check_ranks(dense.path, "conv2d", rank_problems(dense, ranks));
    return factored_conv<SpatialSvdConv2d>(dense, {.conv = conv_of(dense), .rank = rank_of(ranks, "rank")}, factors);
  }
};

}  // namespace

const Format& spatial_svd_format() {
  static const SpatialSvdFormat format;
  return format;
}

}  // namespace tessera
