#include "compress/formats/tt.h"

#include <utility>

#include "compress/formats/factored_conv.h"
#include "compress/formats/mode_split.h"
#include "compress/formats/tt_table.h"
#include "core/linalg/tt.h"
#include "core/support/counting.h"
#include "core/support/error.h"
#include "layers/tt_conv2d.h"
#include "layers/tt_linear.h"

namespace tessera {
namespace {

constexpr std::string_view kKinds[]{"conv2d", "linear", "embedding"};
constexpr std::string_view kHelp = "rank between two modes of a tensor train";
constexpr RankName kNames[2 * kMostConvModes]{{"r1", kHelp, "4"},  {"r2", kHelp, "16"}, {"r3", kHelp, "16"},
                                              {"r4", kHelp, "16"}, {"r5", kHelp, "16"}, {"r6", kHelp, "4"}};

bool is_linear(const DenseLayer& layer) { return layer.module->kind() == "linear"; }

class TtFormat final : public Format {
 public:
  explicit TtFormat(ModesConfig modes = {}) : modes_(std::move(modes)), table_(kNames, modes_) {}

  std::string_view name() const override { return "tt"; }
  std::span<const std::string_view> kinds() const override { return kKinds; }
  std::span<const RankName> rank_names() const override { return kNames; }  // for the longest train; a layer has the first ones
  std::size_t fewest_ranks() const override { return 1; }
  std::unique_ptr<Format> with_modes(const ModesConfig& modes) const override { return std::make_unique<TtFormat>(modes); }

  const Format& for_layer(const Module& layer) const override {
    if (is_form_of(table_, layer)) return table_;
    return *this;
  }

  std::string why_not(const DenseLayer& layer) const override {
    if (layer.groups != 1) return str("has ", layer.groups, " groups; tt needs 1");
    if (!is_linear(layer) && layer.taps() == 1) return "has a 1x1 kernel; tt needs a larger one";
    const ModeSplit modes = split(layer.out, layer.in);
    if (!is_linear(layer) && modes.out.size() > kMostConvModes) {
      return str("is a conv2d; tt splits its channels into ", kMostConvModes, " modes at most");
    }
    return why_no_split(modes, layer.out, layer.in);
  }

  std::vector<std::int64_t> largest_ranks(const DenseLayer& layer) const override { return largest_tt_ranks(train_modes(layer)); }

  std::vector<RankProblem> rank_problems(const DenseLayer& layer, const Ranks& ranks) const override {
    return tt_rank_problems(train_modes(layer), ranks);
  }

  Ranks legal_ranks(const DenseLayer& layer, Ranks ranks) const override {
    return legal_tt_ranks(train_modes(layer), std::move(ranks));
  }

  FormatCost cost(const DenseLayer& layer, const Ranks& ranks) const override {
    const Modes modes = train_modes(layer);
    const std::vector<std::int64_t> r = values_of(ranks);
    FormatCost cost{.parameters = layer.bias_parameters()};
    for (std::size_t k = 0; k < modes.size(); ++k) {
      cost.parameters += (k == 0 ? 1 : r[k - 1]) * modes[k] * (k + 1 == modes.size() ? 1 : r[k]);
    }
    const ModeSplit sides = split(layer.out, layer.in);
    if (is_linear(layer)) {
      const TtHalves halves = tt_halves(sides.out, sides.in, r);
      const std::int64_t i_left = product_of(std::span(sides.in).first(halves.left));
      const std::int64_t o_right = product_of(std::span(sides.out).subspan(halves.left));
      cost.macs = halves.macs * layer.output_positions();
      cost.activations = i_left * r[halves.left - 1] * o_right * layer.output_positions();
      return cost;
    }
    const std::int64_t r_out = r[sides.out.size() - 1], r_in = r[sides.out.size()];
    cost.macs =
        layer.input_positions() * r_in * layer.in + layer.output_positions() * (r_out * layer.taps() * r_in + layer.out * r_out);
    cost.activations = layer.input_positions() * r_in + layer.output_positions() * r_out;
    return cost;
  }

  std::vector<std::vector<double>> spectra(const Tensor& weight) const override {
    if (weight.rank() == 2) {
      const ModeSplit modes = split(weight.dim(0), weight.dim(1));
      return linalg::tt_spectra(tt_tensor(weight, modes.out, modes.in));
    }
    const Modes modes = train_modes(weight.shape());
    return linalg::tt_spectra(weight.reshape(shape_of(modes)));
  }

  Factors project(const Tensor& weight, const Ranks& ranks, const ProjectOptions&, const Factors*) const override {
    if (weight.rank() == 2) {
      const ModeSplit modes = split(weight.dim(0), weight.dim(1));
      return linalg::tt_svd(tt_tensor(weight, modes.out, modes.in), values_of(ranks)).cores;
    }
    const Modes modes = train_modes(weight.shape());
    return linalg::tt_svd(weight.reshape(shape_of(modes)), values_of(ranks)).cores;
  }

  Tensor compose(const Factors& factors, const Shape& weight) const override {
    const Tensor tensor = linalg::reconstruct({factors});
    if (weight.rank() != 2) return tensor.reshape(weight);
    const ModeSplit modes = split(weight[0], weight[1]);
    return tt_matrix(tensor, modes.out, modes.in);
  }

  std::unique_ptr<Module> layer(const DenseLayer& dense, const Ranks& ranks, const Factors* factors) const override {
    check_ranks(dense.path, std::string(dense.module->kind()), rank_problems(dense, ranks));
    const ModeSplit modes = split(dense.out, dense.in);
    const auto filled = [&](auto made, const auto& module) -> std::unique_ptr<Module> {
      made->take_traits(module);
      if (factors != nullptr) made->set_cores(*factors);
      return made;
    };
    if (const auto* linear = dynamic_cast<const Linear*>(dense.module)) {
      const TtLinearConfig config{.in = dense.in,
                                  .out = dense.out,
                                  .out_modes = modes.out,
                                  .in_modes = modes.in,
                                  .ranks = values_of(ranks),
                                  .bias = dense.bias};
      return filled(std::make_unique<TtLinear>(config), *linear);
    }
    const TtConv2dConfig config{.conv = conv_of(dense), .out_modes = modes.out, .in_modes = modes.in, .ranks = values_of(ranks)};
    return filled(std::make_unique<TtConv2d>(config), dynamic_cast<const Conv2d&>(*dense.module));
  }

 private:
  ModeSplit split(std::int64_t out, std::int64_t in) const { return split_modes(modes_, out, in); }

  Modes train_modes(const Shape& weight) const {
    const ModeSplit modes = split(weight[0], weight.dim(-1));
    if (weight.rank() == 2) return paired_modes(modes.out, modes.in);
    return tt_conv_modes({.kernel = {weight[1], weight[2]}}, modes.out, modes.in);
  }

  Modes train_modes(const DenseLayer& layer) const {
    if (is_linear(layer)) return train_modes(Shape{layer.out, layer.in});
    return train_modes(Shape{layer.out, layer.kernel.h, layer.kernel.w, layer.in});
  }

  ModesConfig modes_;
  TtTable table_;
};

}  // namespace

const Format& tt_format() {
  static const TtFormat format;
  return format;
}

}  // namespace tessera
