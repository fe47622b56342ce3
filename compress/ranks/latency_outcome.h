// The outcome of choosing ranks by the network's time.
#pragma once

#include <cstdint>

#include "core/config/fields.h"

namespace tessera {

// Speed-ups of the whole network over its dense self.
struct LatencyOutcome {
  double asked = 1;
  double fastest = 1;  // measured at the fastest ranks of each layer
  double predicted = 1;  // of the ranks that were chosen
  double measured = 1;
  std::int64_t solutions = 0;  // that were measured until one was close enough; 0 where the fastest ranks are too slow
  bool reached() const { return solutions > 0; }  // the fastest ranks do
  void fields(Fields& f);
};

}  // namespace tessera
