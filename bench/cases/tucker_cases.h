// A Tucker-2 convolution beside the dense convolutions that compute the same function: ours, and oneDNN called directly.
#pragma once

#include <memory>

#include "bench/dense_shapes.h"
#include "bench/turns.h"
#include "compress/timing/latency.h"
#include "layers/conv2d.h"
#include "layers/tucker2_conv2d.h"

namespace tessera::bench {

struct TuckerSides {
  ConvShape shape;
  Tucker2Ranks ranks;
  std::shared_ptr<Module> tucker;
  std::shared_ptr<Conv2d> dense;
  Tensor x;
};

// Random factors, and the dense layer of the weight that they compose. Stride and groups are 1.
TuckerSides make_sides(const ConvShape& shape, Tucker2Ranks ranks);

// Times all sides under a DecisionScope of its own: in inference every side keeps what it derives from its constant weights,
// training is forward and both backwards. Throws NumericError when they compute different things, InternalError where
// oneDNN has no fast way.
// The line: shape, rank_out, rank_in, phase (forward, which is inference, or training), weights (constant or changing), rounds;
// tucker, rival (the fastest dense side), other_dense, blocked_dense and each of parts as {name, ms, gflops}; ratio (rival /
// tucker), blocked_ratio, flop_ratio; decisions.
Value measure_phase(const TuckerSides& sides, Phase phase, const TurnOptions& turns);

}  // namespace tessera::bench
