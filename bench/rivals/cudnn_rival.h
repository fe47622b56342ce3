// cuDNN called directly with the first ten configurations that run of its heuristics A and B and of its fallback list each, on
// channels last as we have them and on channels first: the rival of our convolutions.
#pragma once

#include "bench/device_rotation.h"
#include "bench/rivals/onednn_rival.h"

namespace tessera::bench {

// `sets`: the pass on other tensors, all of one dtype, f32 or bf16, weights too; NHWC and OHWI. What channels first needs is laid
// out before any timing. `tf32`: f32 operands may be rounded; without it no engine is taken that does so.
std::vector<RotatedSide> cudnn_rivals(ConvPass pass, const ConvShape& shape, const std::vector<ConvTensors>& sets, bool tf32);

}  // namespace tessera::bench
