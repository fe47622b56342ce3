// ResNet-18 in the ranks that TDC gives it ("SC", multiples of 32) beside the dense network that computes the same, one image at
// a time.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "bench/device_rotation.h"
#include "core/nn/module.h"
#include "layers/tucker2_conv2d.h"

namespace tessera::bench {

struct LayerRanks {
  std::string path;
  Tucker2Ranks ranks;
};
// Of the 16 convolutions of 3x3; stem, shortcuts and classifier stay dense.
std::vector<LayerRanks> resnet18_ranks();

// Both with random weights, folded for inference: the dense network's convolutions hold the products of the factors.
struct NetworkPair {
  std::unique_ptr<Module> tucker;
  std::unique_ptr<Module> dense;
};
NetworkPair resnet18_pair(Device device);

// Ours is Tucker-2; the rival: the dense network, no convolution by a kernel of ours (cuda::LibraryConvolutions), each by the
// fastest of cuDNN's deterministic algorithms for channels last, with or without its tail fused, and, over every pixel of 1x1,
// of cuBLASLt. f32 without tf32. Call under ConstantWeights and a measuring DecisionScope.
RotatedCase network_case(const NetworkPair& networks, Device device);

}  // namespace tessera::bench
