// Ranks by the time of the whole network: TDC's co-design (Xiang et al., PPoPP 2023), carried out on the device at hand. Layers
// are timed by rank, dynamic programming chooses one rank tuple or the dense layer for each, and the network itself is timed.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "compress/ranks/latency_outcome.h"
#include "compress/ranks/latency_table.h"
#include "core/config/fields.h"

namespace tessera {

struct LatencyRanks {
  std::vector<RankChoice> choices;  // one for each layer
  LatencyOutcome outcome;
};

// Ranks at which the network is `speedup` times as fast as its dense self, timed where the veto's options say, with the least
// discarded energy. That is the sum over layers and spectra of the share of squared singular values that the ranks cut. A layer
// that its ranks would not make 1.02 times faster stays dense. Inside a DecisionScope layers of one shape are timed once. The
// network is timed at the fastest ranks of each layer; where that is too slow, those are the choice. Else it is timed at the
// chosen ranks, and where it misses `speedup` by more than 5 % what the layers save is rescaled to what was measured, and the
// ranks are chosen again, at most twice; the nearest is taken.
LatencyRanks ranks_by_latency(double speedup, std::int64_t multiple_of, std::unique_ptr<Module>& root,
                              std::span<const TimedLayer> layers, const Shape& input, const Veto& veto);

}  // namespace tessera
