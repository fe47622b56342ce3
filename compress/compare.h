// Dense layers and networks on the clock against their compressed selves, in turn.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "compress/latency.h"
#include "compress/speed.h"

namespace tessera {

// A layer of a tree that stands in the place of a dense one.
struct Replaced {
  std::string path;
  std::unique_ptr<Module> dense;
};

// Milliseconds of each round's run.
struct PairedTimes {
  std::vector<double> dense;
  std::vector<double> compressed;
};

// Faster means: the lower end of the 95 % confidence interval of the median ratio is above kFasterRatio.
Speed speed_of(const PairedTimes& times);

// A layer alone, on a batch of its own input's shape. `input_gradient`: in training, as TimedWork says.
PairedTimes time_layer(Module& dense, Module& compressed, const Shape& input, Phase phase, bool input_gradient,
                       std::int64_t rounds);

// A whole network, with the dense layers in their places and with those that it has. Leaves tree and `replaced` as they were.
PairedTimes time_network(std::unique_ptr<Module>& root, std::span<Replaced> replaced, const Shape& input, Phase phase,
                         std::int64_t rounds);

// The same of a layer or network that has no compressed self.
std::vector<double> time_dense(Module& module, const Shape& input, Phase phase, bool input_gradient, std::int64_t rounds);

}  // namespace tessera
