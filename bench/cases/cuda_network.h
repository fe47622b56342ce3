// ResNet-18 in Tucker-2 form (resnet18_sc.h) beside the dense network that computes the same, on a GPU, one image at a time.
#pragma once

#include "bench/cases/resnet18_sc.h"
#include "bench/device_rotation.h"

namespace tessera::bench {

// Both folded for inference.
NetworkPair folded_resnet18_pair(Device device);

// Ours is Tucker-2; the rival: the dense network, no convolution by a kernel of ours (cuda::LibraryConvolutions), each by the
// fastest of cuDNN's deterministic algorithms for channels last, with or without its tail fused, and, over every pixel of 1x1,
// of cuBLASLt. f32 without tf32. Call under ConstantWeights and a measuring DecisionScope.
RotatedCase network_case(const NetworkPair& networks, Device device);

}  // namespace tessera::bench
