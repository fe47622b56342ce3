#include "bench/cases/resnet18_sc.h"

#include "bench/cases/factored_cases.h"
#include "bench/rivals/onednn_network.h"
#include "compress/timing/latency.h"
#include "core/device/constant_weights.h"
#include "core/device/decisions.h"
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
  auto network = build_model(named_model("resnet18", 1000), kImage);
  initialize(*network, 1);
  return network;
}

// The Tucker-2 layer that replaces a dense one. Its values are drawn at random, nothing is decomposed.
std::unique_ptr<Tucker2Conv2d> drawn(Module& network, const LayerRanks& layer) {
  const auto* dense = dynamic_cast<const Conv2d*>(&find_module(network, layer.path));
  TESSERA_CHECK(dense != nullptr, InternalError, "resnet18: ", layer.path, " is no convolution");
  auto tucker = Tucker2Conv2d::shaped_for(*dense, layer.ranks);
  tucker->reset_parameters(1);
  return tucker;
}

using Image = OnednnNetwork::Image;

// Adds a convolution of a folded network, or each filter of a factored one. The tail is added to the last of them.
Image convolve(OnednnNetwork& network, Image x, const Module& layer, OnednnNetwork::Tail tail) {
  tail.bias = layer.parameter("bias").value();
  const auto* const factored = dynamic_cast<const FactoredConv2d*>(&layer);
  if (factored == nullptr) {
    const auto& conv = dynamic_cast<const Conv2d&>(layer);
    const Conv2dConfig& c = conv.options();
    return network.convolve(x, conv.weight().value(), tail, {.stride = c.stride, .padding = c.padding});
  }
  const auto filters = factored->filters();
  for (const FactoredConv2d::Filter& filter : filters.first(filters.size() - 1)) {
    x = network.convolve(x, filter.parameter->value(), {}, filter.options);
  }
  return network.convolve(x, filters.back().parameter->value(), tail, filters.back().options);
}

// The folded ResNet-18, built of oneDNN's primitives.
Contestant onednn_side(const std::string& name, const Module& resnet, const Tensor& x, OnednnNetwork::Layout layout) {
  const auto network = std::make_shared<OnednnNetwork>(x, layout);
  Image image = convolve(*network, 0, resnet.child("conv1"), {.relu = true});
  image = network->max_pool(image, {3, 3}, {2, 2}, {1, 1});
  for (int stage = 1; stage <= 4; ++stage) {
    for (const auto& [index, block] : resnet.child(str("layer", stage)).children()) {
      const Image between = convolve(*network, image, block->child("conv1"), {.relu = true});
      if (block->has_child("downsample")) image = convolve(*network, image, block->child("downsample").child("0"), {});
      image = convolve(*network, between, block->child("conv2"), {.residual = image, .relu = true});
    }
  }
  const Module& fc = resnet.child("fc");
  image = network->product(network->average(image), fc.parameter("weight").value(), fc.parameter("bias").value());
  return {name, [network] { network->run(); }, {}, [network, image] { return network->values(image); }};
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

namespace {

Value describe_row(const NetworkPair& networks, std::int64_t batch, Phase phase, std::int64_t rounds) {
  const auto macs = [&](const Module& network) { return static_cast<double>(total_cost(network, kImage).macs); };
  Value row = Value::map();
  row.set("format", "tucker2");
  row.set("shape", str("resnet18 ", batch, "x224x224x3"));
  row.set("ranks", "SC");
  row.set("phase", phase == Phase::inference ? "forward" : "training");
  row.set("weights", phase == Phase::inference ? "constant" : "changing");
  row.set("rounds", rounds);
  row.set("flop_ratio", macs(*networks.dense) / macs(*networks.tucker));
  return row;
}

void set_sides(Value& row, const Samples& dense, const Samples& factored) {
  row.set("rival", timed("dense network", dense));
  row.set("factored", timed("factored network", factored));
  row.set("ratio", ratio_value(dense, factored));
}

Contestant forward_side(const std::string& name, Module& network, const Tensor& x) {
  const auto y = std::make_shared<Tensor>();
  const auto run = [=, &network] {
    const NoGrad no_grad;
    *y = network(Var(x), {}).value();
  };
  return {name, run, {}, [=] { return *y; }};
}

Value measure_inference(const NetworkPair& networks, std::int64_t batch, std::int64_t rounds) {
  const DecisionScope decisions({.measure = true});
  const ConstantWeights constant;
  Shape input = kImage;
  input.set(0, batch);
  const Tensor x = Tensor::empty(input);
  fill_normal(x, RngStream(0, "resnet18", "image"), 0, 1);
  const std::shared_ptr<Module> factored = for_inference(*networks.tucker);
  const std::shared_ptr<Module> dense = for_inference(*networks.dense);
  const std::vector<Contestant> all{
      layer_side("factored network", factored, x, Phase::inference), layer_side("dense network", dense, x, Phase::inference),
      onednn_side("oneDNN's chain, layouts of its choice", *factored, x, OnednnNetwork::Layout::chosen),
      onednn_side("oneDNN's chain, channels in blocks", *factored, x, OnednnNetwork::Layout::blocks)};
  check_agreement(
      all, [] {}, kAgreement);
  const std::vector<Samples> samples = time_in_turns(all, {.rounds = rounds});
  Value row = describe_row(networks, batch, Phase::inference, rounds);
  set_sides(row, samples[1], samples[0]);
  const std::size_t chain = 2 + fastest(std::span(samples).subspan(2));
  row.set("chain", timed(all[chain].name, samples[chain]));
  row.set("chain_ratio", ratio_value(samples[chain], samples[0]));
  row.set("decisions", tessera::to_value(decisions.taken()).at("decisions"));
  return row;
}

Value measure_training(const NetworkPair& networks, std::int64_t batch, std::int64_t rounds) {
  const Tensor image = Tensor::empty(kImage);
  fill_normal(image, RngStream(0, "resnet18", "image"), 0, 1);
  check_agreement(
      std::vector<Contestant>{forward_side("factored network", *networks.tucker, image),
                              forward_side("dense network", *networks.dense, image)},
      [] {}, kAgreement);
  const DecisionScope decisions({.measure = true});
  Shape input = kImage;
  input.set(0, batch);
  const TimedWork work(*networks.dense, input, {.phase = Phase::training});
  const Untouched factored_state(*networks.tucker), dense_state(*networks.dense);
  const std::vector<Contestant> sides{{"factored network", [&] { work.run(*networks.tucker); }},
                                      {"dense network", [&] { work.run(*networks.dense); }}};
  const std::vector<Samples> samples = time_in_turns(sides, {.rounds = rounds});
  Value row = describe_row(networks, batch, Phase::training, rounds);
  set_sides(row, samples[1], samples[0]);
  row.set("decisions", tessera::to_value(decisions.taken()).at("decisions"));
  return row;
}

}  // namespace

Value measure_resnet18(const NetworkPair& networks, std::int64_t batch, Phase phase, std::int64_t rounds) {
  return phase == Phase::inference ? measure_inference(networks, batch, rounds) : measure_training(networks, batch, rounds);
}

}  // namespace tessera::bench
