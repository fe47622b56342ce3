// A network on the clock, layer by layer and as a whole: dense, and compressed beside it where it is.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "compress/timing/compare.h"

namespace tessera {

struct TimedSide {
  std::string kind;
  std::int64_t macs = 0;  // per sample, of a forward; in decode of a new position
  std::int64_t flops = 0;  // of one run of the batch: in training its backward too
  Summary ms;

  double gflops_per_second() const { return static_cast<double>(flops) / (1e6 * ms.median); }
};

struct LayerTiming {
  std::string path;  // "" for the whole network
  TimedSide dense;
  std::optional<TimedSide> compressed;  // where the layer is; of the network, where any layer is
  MedianInterval speedup;  // of dense time over compressed time, by round
  double network_share = 0;  // dense time alone over that of the dense network
  bool replayed = false;  // as Timings say
};

// The compressed layers of a network as the dense ones that compute the same: what their originals cost.
std::vector<Replaced> dense_twins(Module& root);

// A row per leaf in the order of the forward, then the network. Each layer runs alone, on random input of the shape that it has
// inside the network; a compressed one in turn with what it replaces. In training, layers before and at the first with parameters
// compute no gradient of their input. Leaves the network as it was.
std::vector<LayerTiming> time_layers(std::unique_ptr<Module>& root, std::span<Replaced> replaced, const Shape& input,
                                     const TimingOptions& options);

}  // namespace tessera
