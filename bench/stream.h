// Streaming bandwidth: y = a x over tensors that no cache holds, by core/cpu/stream_peak.h. The yardstick of
// memory-bound ops.
#pragma once

#include <vector>

#include "bench/turns.h"

namespace tessera::bench {

// Two ways of one call on tensors of `megabytes` MiB each: ordinary stores, and stores that bypass the caches. A call moves
// stream_bytes().
std::vector<Contestant> stream_contestants(std::int64_t megabytes);
double stream_bytes(std::int64_t megabytes);

}  // namespace tessera::bench
