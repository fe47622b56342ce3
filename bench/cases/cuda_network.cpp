#include "bench/cases/cuda_network.h"

#include "bench/cases/dense_cases.h"
#include "core/autograd/var.h"
#include "core/ops/conv2d_plan_cuda.h"
#include "core/support/error.h"
#include "layers/conv2d.h"
#include "layers/fold.h"
#include "layers/models/model.h"

namespace tessera::bench {
namespace {

constexpr double kAgreement = 1e-3;  // of the largest score: three convolutions against one, twenty layers deep
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

RotatedSide side(const std::string& name, Module& network, bool libraries_alone, const Tensor& image) {
  const Tensor scores = Tensor::empty(network.output_shape(kImage), DType::f32, image.device());
  const auto run = [&network, libraries_alone, image, scores](std::size_t) {
    const NoGrad no_grad;
    const cuda::LibraryConvolutions scope(libraries_alone);
    scores.copy_from(network(Var(image), {}).value());
  };
  return {name, run, scores};
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

NetworkPair resnet18_pair(Device device) {
  std::unique_ptr<Module> tucker = random_resnet18();
  std::unique_ptr<Module> dense = random_resnet18();
  for (const LayerRanks& layer : resnet18_ranks()) {
    auto factored = drawn(*dense, layer);
    replace_module(dense, layer.path, factored->to_dense());
    replace_module(tucker, layer.path, std::move(factored));
  }
  NetworkPair pair{for_inference(*tucker), for_inference(*dense)};
  move_to(*pair.tucker, device);
  move_to(*pair.dense, device);
  return pair;
}

RotatedCase network_case(const NetworkPair& networks, Device device) {
  const Tensor image = random_tensor(kImage, "image", DType::f32, device);
  return {.op = "resnet18 SC",
          .shape = "1x224x224x3",
          .pass = "inference",
          .precision = "f32",
          .flops = 2 * static_cast<double>(total_cost(*networks.tucker, kImage).macs),
          .ours = {side("Tucker-2", *networks.tucker, false, image)},
          .rivals = {side("dense, cuDNN", *networks.dense, true, image)},
          .tolerance = kAgreement};
}

}  // namespace tessera::bench
