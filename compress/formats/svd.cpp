#include "compress/formats/svd.h"

#include <algorithm>

#include "compress/formats/factored_conv.h"
#include "core/linalg/tucker.h"
#include "core/support/error.h"
#include "core/support/text.h"
#include "layers/svd_conv2d.h"
#include "layers/svd_linear.h"

namespace tessera {
namespace {

constexpr std::string_view kKinds[]{"conv2d", "linear"};

// Reshapes [out, 1, 1, in] or [out, in] to [out, in].
Tensor as_matrix(const Tensor& weight) { return weight.reshape({weight.dim(0), weight.dim(-1)}); }

class SvdFormat final : public Format {
 public:
  std::string_view name() const override { return "svd"; }
  std::span<const std::string_view> kinds() const override { return kKinds; }
  std::span<const RankName> rank_names() const override { return kSingleRank; }
  bool randomises() const override { return true; }
  bool ends_in_input_channels() const override { return true; }

  std::string why_not(const DenseLayer& layer) const override {
    if (!is_form_of(*this, *layer.module))
      return str("is ", with_article(layer.module->kind()), "; svd factors linear and 1x1 conv2d");
    if (layer.groups != 1) return str("has ", layer.groups, " groups; svd needs 1");
    if (layer.taps() != 1) return str("has a ", layer.kernel, " kernel; svd needs 1x1");
    return "";
  }

  std::vector<std::int64_t> largest_ranks(const DenseLayer& layer) const override { return {std::min(layer.out, layer.in)}; }

  std::vector<RankProblem> rank_problems(const DenseLayer& layer, const Ranks& ranks) const override {
    return svd_rank_problems(layer.out, layer.in, rank_of(ranks, "rank"));
  }

  FormatCost cost(const DenseLayer& layer, const Ranks& ranks) const override {
    const std::int64_t rank = rank_of(ranks, "rank");
    const std::int64_t weights = rank * (layer.in + layer.out);
    // The first factor has a convolution's stride, so both factors are applied at the output positions.
    return {.parameters = weights + layer.bias_parameters(),
            .macs = weights * layer.output_positions(),
            .activations = rank * layer.output_positions()};
  }

  std::vector<std::vector<double>> spectra(const Tensor& weight) const override {
    const Tensor matrix = as_matrix(weight);
    return {linalg::mode_spectrum(matrix, matrix.dim(0) <= matrix.dim(1) ? 0 : 1)};
  }

  Factors project(const Tensor& weight, const Ranks& ranks, const ProjectOptions& options, const Factors*) const override {
    const SvdFactors factors = svd_project(as_matrix(weight), rank_of(ranks, "rank"), options.randomised);
    return {factors.in_factor, factors.out_factor};
  }

  Tensor compose(const Factors& factors, const Shape& weight) const override {
    return svd_compose({.out_factor = factors.at(1), .in_factor = factors.at(0)}).reshape(weight);
  }

  std::unique_ptr<Module> layer(const DenseLayer& dense, const Ranks& ranks, const Factors* factors) const override {
    const std::int64_t rank = rank_of(ranks, "rank");
    check_ranks(dense.path, std::string(dense.module->kind()), rank_problems(dense, ranks));
    const auto* const linear = dynamic_cast<const Linear*>(dense.module);
    if (linear == nullptr) return factored_conv<SvdConv2d>(dense, {.conv = conv_of(dense), .rank = rank}, factors);
    auto made = SvdLinear::shaped_for(*linear, rank);
    if (factors != nullptr) made->set_factors({.out_factor = factors->at(1), .in_factor = factors->at(0)});
    return made;
  }
};

}  // namespace

const Format& svd_format() {
  static const SvdFormat format;
  return format;
}

}  // namespace tessera
