#include "compress/formats/tt_garipov.h"

#include <utility>

#include "compress/formats/factored_conv.h"
#include "compress/formats/mode_split.h"
#include "core/linalg/tt.h"
#include "layers/tt_garipov_conv2d.h"

namespace tessera {
namespace {

constexpr std::string_view kHelp = "rank between two modes of a tensor train";
constexpr RankName kNames[kMostPairs]{{"r1", kHelp, "9"}, {"r2", kHelp, "20"}, {"r3", kHelp, "16"}, {"r4", kHelp, "4"}};

class TtGaripovFormat final : public LargerConvFormat {
 public:
  explicit TtGaripovFormat(ModesConfig modes = {}) : modes_(std::move(modes)) {}

  std::string_view name() const override { return "tt_garipov"; }
  std::span<const RankName> rank_names() const override { return kNames; }  // for the longest train; a layer has the first ones
  std::size_t fewest_ranks() const override { return 2; }
  bool lowers_macs() const override { return false; }
  std::unique_ptr<Format> with_modes(const ModesConfig& modes) const override { return std::make_unique<TtGaripovFormat>(modes); }

  std::string why_not(const DenseLayer& layer) const override {
    if (std::string reason = LargerConvFormat::why_not(layer); !reason.empty()) return reason;
    return why_no_split(split_modes(modes_, layer.out, layer.in), layer.out, layer.in);
  }

  std::vector<std::int64_t> largest_ranks(const DenseLayer& layer) const override { return largest_tt_ranks(train_modes(layer)); }

  std::vector<RankProblem> rank_problems(const DenseLayer& layer, const Ranks& ranks) const override {
    return tt_rank_problems(train_modes(layer), ranks);
  }

  Ranks legal_ranks(const DenseLayer& layer, Ranks ranks) const override {
    return legal_tt_ranks(train_modes(layer), std::move(ranks));
  }

  FormatCost cost(const DenseLayer& layer, const Ranks& ranks) const override {
    FormatCost cost{.parameters = layer.bias_parameters(), .macs = layer.macs()};
    for (const Shape& core : core_shapes(train_modes(layer), values_of(ranks))) cost.parameters += core.numel();
    return cost;
  }

  std::vector<std::vector<double>> spectra(const Tensor& weight) const override { return linalg::tt_spectra(tensor_of(weight)); }

  Factors project(const Tensor& weight, const Ranks& ranks, const ProjectOptions&, const Factors*) const override {
    return linalg::tt_svd(tensor_of(weight), values_of(ranks)).cores;
  }

  Tensor compose(const Factors& factors, const Shape& weight) const override {
    const ModeSplit modes = split_modes(modes_, weight[0], weight[3]);
    return garipov_weight(linalg::reconstruct({factors}), {weight[1], weight[2]}, modes.out, modes.in);
  }

  std::unique_ptr<Module> layer(const DenseLayer& dense, const Ranks& ranks, const Factors* factors) const override {
    check_ranks(dense.path, "conv2d", rank_problems(dense, ranks));
    const ModeSplit modes = split_modes(modes_, dense.out, dense.in);
    auto made = std::make_unique<TtGaripovConv2d>(
        TtGaripovConv2dConfig{.conv = conv_of(dense), .out_modes = modes.out, .in_modes = modes.in, .ranks = values_of(ranks)});
    made->take_traits(dynamic_cast<const Conv2d&>(*dense.module));
    if (factors != nullptr) made->set_cores(*factors);
    return made;
  }

 private:
  Tensor tensor_of(const Tensor& weight) const {
    const ModeSplit modes = split_modes(modes_, weight.dim(0), weight.dim(3));
    return garipov_tensor(weight, modes.out, modes.in);
  }

  Modes train_modes(const DenseLayer& layer) const {
    const ModeSplit modes = split_modes(modes_, layer.out, layer.in);
    return garipov_modes(layer.kernel, modes.out, modes.in);
  }

  ModesConfig modes_;
};

}  // namespace

const Format& tt_garipov_format() {
  static const TtGaripovFormat format;
  return format;
}

}  // namespace tessera
