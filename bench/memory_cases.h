// Ops whose floor is memory traffic: each against copying the same number of bytes with scaling, in the same turns.
#pragma once

#include "bench/turns.h"

namespace tessera::bench {

struct MemoryCase {
  std::string op;
  std::string pass;
  std::string shape;
  double bytes = 0;  // that the op must move at least, each operand counted once per unavoidable walk
  Contestant ours;
};

// Makers of the cases, one at a time in memory: operands of about `megabytes` MiB each.
std::vector<std::function<MemoryCase()>> memory_cases(std::int64_t megabytes);

// The line: op, pass, shape, rounds, tessera_ms, gbytes_per_second, stream_gbytes_per_second, ratio (share of the streaming
// bandwidth, per round).
Value measure_memory(const MemoryCase& memory, std::int64_t megabytes, const TurnOptions& turns);

}  // namespace tessera::bench
