// Times networks against each other in one process: interleaved, so that the machine's drift hits all alike.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/module.h"
#include "core/summary.h"

namespace tessera {

struct PairedTiming {
  std::vector<Summary> networks;  // milliseconds per batch
  // Median over the rounds of time(first network) / time(network i), with p10 and p90. 1 for the first.
  std::vector<Summary> speedup;
};

// Inference on one random batch of the input shape. Warms up each network, then times them in turn, `repeats` rounds.
PairedTiming time_networks(std::span<Module* const> networks, const Shape& input, std::int64_t repeats);

}  // namespace tessera
