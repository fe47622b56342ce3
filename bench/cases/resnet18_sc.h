// ResNet-18 with its sixteen 3x3 convolutions in Tucker-2 form, in the ranks that TDC (Xiang et al., PPoPP 2023) calls "SC":
// multiples of 32. Stem, shortcuts and classifier stay dense: 11.69 M parameters become 3.38 M, 1.814 GMACs of 224x224 0.761.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "compress/timing/timed_at.h"
#include "core/nn/module.h"
#include "layers/tucker2_conv2d.h"

namespace tessera::bench {

struct LayerRanks {
  std::string path;
  Tucker2Ranks ranks;
};
std::vector<LayerRanks> resnet18_ranks();

// Random weights; the dense network's convolutions hold the products of the factors, so that both compute the same.
struct NetworkPair {
  std::unique_ptr<Module> tucker;
  std::unique_ptr<Module> dense;
};
NetworkPair resnet18_pair();

// The two on the clock in turn, on images of 224x224. In inference batch norms are folded and weights constant; training is a
// forward and a backward. The row: format, shape ("resnet18 1x224x224x3"), ranks ("SC"), phase (forward or training), weights,
// rounds, rival (the dense network) and factored, as {name, ms}, ratio (rival / factored), flop_ratio, decisions. A forward is
// timed against the same factored network in oneDNN's primitives too (bench/rivals/onednn_network.h): chain, as {name, ms}, and
// chain_ratio (chain / factored). Throws NumericError when their forwards differ.
Value measure_resnet18(const NetworkPair& networks, std::int64_t batch, Phase phase, std::int64_t rounds);

}  // namespace tessera::bench
