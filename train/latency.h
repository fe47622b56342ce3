// Times networks against each other in one process: interleaved, so that the machine's drift hits all alike.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/module.h"

namespace tessera {

struct Timing {
  double median = 0;  // milliseconds per batch
  double p10 = 0;
  double p90 = 0;
};

struct PairedTiming {
  std::vector<Timing> networks;
  // Median over the rounds of time(first network) / time(network i), with p10 and p90. 1 for the first.
  std::vector<Timing> speedup;
};

// Inference on one random batch of the input shape. Warms up each network, then times them in turn, `repeats` rounds.
PairedTiming time_networks(std::span<Module* const> networks, const Shape& input, std::int64_t repeats);

}  // namespace tessera
