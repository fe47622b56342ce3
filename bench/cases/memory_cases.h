// Ops whose floor is memory traffic: each against streaming bandwidth (bench/stream.h), in the same turns.
#pragma once

#include "bench/turns.h"

namespace tessera::bench {

struct MemoryCase {
  std::string op;
  std::string pass;
  std::string shape;
  double bytes = 0;  // that the op must move at least, each operand counted once per unavoidable walk
  Contestant ours;
  bool copies = false;  // from one tensor to another of the same size: no pass in place is its yardstick
};

// What a case is called, and what makes it: one at a time in memory, with operands of about `megabytes` MiB each.
struct MemoryMaker {
  std::string op;
  std::string shape;
  std::function<MemoryCase()> make;
};
std::vector<MemoryMaker> memory_cases(std::int64_t megabytes, Device device = {});

// The line: op, pass, shape, rounds, tessera_ms, bytes, gbytes_per_second, stream (which pass was the fastest),
// stream_gbytes_per_second, ratio (share of the streaming bandwidth, per round).
Value measure_memory(const MemoryCase& memory, std::int64_t megabytes, const TurnOptions& turns);

}  // namespace tessera::bench
