#include "bench/cases/resnet18_sc.h"

#include "compress/timing/compare.h"
#include "core/device/decisions.h"
#include "core/linalg/relative_error.h"
#include "core/rng.h"
#include "core/support/error.h"
#include "layers/conv2d.h"
#include "layers/fold.h"
#include "layers/models/model.h"
#include "train/run/decisions_file.h"

namespace tessera::bench {
namespace {

constexpr double kAgreement = 1e-3;  // three convolutions against one, twenty layers deep
const Shape kImage{1, 224, 224, 3};

std::unique_ptr<Module> random_resnet18() {
  auto network = build_model({.name = "resnet18", .classes = 1000}, kImage);
  initialize(*network, 1);
  return network;
}

// The layer that stands in the place of a dense one: its values are drawn, nothing is decomposed.
std::unique_ptr<Tucker2Conv2d> drawn(Module& network, const LayerRanks& layer) {
  const auto* dense = dynamic_cast<const Conv2d*>(&find_module(network, layer.path));
  TESSERA_CHECK(dense != nullptr, InternalError, "resnet18: ", layer.path, " is no convolution");
  auto tucker = Tucker2Conv2d::shaped_for(*dense, layer.ranks);
  tucker->reset_parameters(1);
  return tucker;
}

void check_agreement(const NetworkPair& networks) {
  const NoGrad no_grad;
  const Tensor image = Tensor::empty(kImage);
  fill_normal(image, RngStream(0, "resnet18", "image"), 0, 1);
  const double error =
      linalg::relative_error((*networks.tucker)(Var(image), {}).value(), (*networks.dense)(Var(image), {}).value());
  TESSERA_CHECK(error < kAgreement, NumericError, "resnet18: the factored network's scores differ from the dense one's by ",
                error, "; needs ", kAgreement);
}

Value side(const std::string& name, const std::vector<double>& ms) {
  Value row = Value::map();
  row.set("name", name);
  row.set("ms", to_value(summarise(ms)));
  return row;
}

}  // namespace

std::vector<LayerRanks> resnet18_ranks() {
  struct Stage {
    Tucker2Ranks first, others;
  };
  constexpr Stage kStages[]{{{32, 64}, {32, 32}}, {{64, 64}, {64, 96}}, {{96, 96}, {96, 128}}, {{160, 160}, {160, 192}}};
  std::vector<LayerRanks> layers;
  for (int stage = 0; stage < 4; ++stage) {
    for (const char* conv : {"0.conv1", "0.conv2", "1.conv1", "1.conv2"}) {
      const bool first = std::string_view(conv) == "0.conv1";
      layers.push_back({str("layer", stage + 1, '.', conv), first ? kStages[stage].first : kStages[stage].others});
    }
  }
  return layers;
}

NetworkPair resnet18_pair() {
  NetworkPair pair{random_resnet18(), random_resnet18()};
  for (const LayerRanks& layer : resnet18_ranks()) {
    auto factored = drawn(*pair.dense, layer);
    replace_module(pair.dense, layer.path, factored->to_dense());
    replace_module(pair.tucker, layer.path, std::move(factored));
  }
  return pair;
}

Value measure_resnet18(const NetworkPair& networks, std::int64_t batch, Phase phase, std::int64_t rounds) {
  check_agreement(networks);
  const DecisionScope decisions({.measure = true});
  Shape input = kImage;
  input.set(0, batch);
  const PairedTimes times =
      time_layer(*networks.dense, *networks.tucker, input, false, {.phase = phase, .rounds = rounds, .folded = for_inference});
  std::vector<double> ratios;
  for (std::size_t i = 0; i < times.dense.size(); ++i) ratios.push_back(times.dense[i] / times.compressed[i]);
  const auto macs = [&](const Module& network) { return static_cast<double>(total_cost(network, kImage).macs); };
  Value row = Value::map();
  row.set("format", "tucker2");
  row.set("shape", str("resnet18 ", batch, "x224x224x3"));
  row.set("ranks", "SC");
  row.set("phase", phase == Phase::inference ? "forward" : "training");
  row.set("weights", phase == Phase::inference ? "constant" : "changing");
  row.set("rounds", rounds);
  row.set("rival", side("dense network", times.dense));
  row.set("factored", side("factored network", times.compressed));
  row.set("ratio", to_value(summarise(ratios)));
  row.set("flop_ratio", macs(*networks.dense) / macs(*networks.tucker));
  row.set("decisions", tessera::to_value(decisions.taken()).at("decisions"));
  return row;
}

}  // namespace tessera::bench
