#include "compress/formats/tucker2.h"

#include <algorithm>

#include "compress/formats/factored_conv.h"
#include "core/support/error.h"
#include "layers/tucker2_conv2d.h"

namespace tessera {
namespace {

constexpr RankName kNames[]{{"out", "rank of the output channels", "32"}, {"in", "rank of the input channels", "64"}};

Tucker2Ranks typed(const Ranks& ranks) { return {.out = rank_of(ranks, "out"), .in = rank_of(ranks, "in")}; }

class Tucker2Format final : public LargerConvFormat {
 public:
  std::string_view name() const override { return "tucker2"; }
  std::span<const RankName> rank_names() const override { return kNames; }
  bool sweeps() const override { return true; }
  bool ends_in_input_channels() const override { return true; }

  std::vector<std::int64_t> largest_ranks(const DenseLayer& layer) const override {
    return {std::min(layer.out, layer.taps() * layer.in), std::min(layer.in, layer.taps() * layer.out)};
  }

  std::vector<RankProblem> rank_problems(const DenseLayer& layer, const Ranks& ranks) const override {
    return tucker2_rank_problems(layer.out, layer.in, layer.taps(), typed(ranks));
  }

  Ranks legal_ranks(const DenseLayer& layer, Ranks ranks) const override {
    const Tucker2Ranks asked = typed(ranks);
    for (Rank& rank : ranks) rank.value = std::min(rank.value, layer.taps() * (rank.name == "out" ? asked.in : asked.out));
    return ranks;
  }

  FormatCost cost(const DenseLayer& layer, const Ranks& ranks) const override {
    const Tucker2Ranks r = typed(ranks);
    const bool has_in = r.in < layer.in;
    const bool has_out = r.out < layer.out;
    const std::int64_t in_factor = has_in ? r.in * layer.in : 0;
    const std::int64_t out_factor = has_out ? r.out * layer.out : 0;
    const std::int64_t core = layer.taps() * r.in * r.out;
    return {.parameters = in_factor + core + out_factor + layer.bias_parameters(),
            .macs = layer.input_positions() * in_factor + layer.output_positions() * (core + out_factor),
            .activations = (has_in ? layer.input_positions() * r.in : 0) + (has_out ? layer.output_positions() * r.out : 0)};
  }

  std::vector<std::vector<double>> spectra(const Tensor& weight) const override {
    return {linalg::mode_spectrum(weight, 0), linalg::mode_spectrum(weight, 3)};
  }

  Factors project(const Tensor& weight, const Ranks& ranks, const ProjectOptions& options,
                  const Factors*) const override {
    const Tucker2Factors factors = tucker2_project(weight, typed(ranks),
                                                   {.max_iterations = options.iterations, .tolerance = options.tolerance});
    return {factors.in_factor, factors.core, factors.out_factor};
  }

  Tensor compose(const Factors& factors, const Shape& weight) const override {
    return tucker2_compose({.out_factor = factors.at(2), .core = factors.at(1), .in_factor = factors.at(0)}).reshape(weight);
  }

  std::unique_ptr<Module> layer(const DenseLayer& dense, const Ranks& ranks, const Factors* factors) const override {
    auto made = Tucker2Conv2d::shaped_for(dynamic_cast<const Conv2d&>(*dense.module), typed(ranks));
    if (factors != nullptr) {
      made->set_factors({.out_factor = factors->at(2), .core = factors->at(1), .in_factor = factors->at(0)});
    }
    return made;
  }
};

}  // namespace

const Format& tucker2_format() {
  static const Tucker2Format format;
  return format;
}

}  // namespace tessera
