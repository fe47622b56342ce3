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

NetworkPair folded_resnet18_pair(Device device) {
  const NetworkPair trained = resnet18_pair();
  NetworkPair pair{for_inference(*trained.tucker), for_inference(*trained.dense)};
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
