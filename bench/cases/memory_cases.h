// Ops whose floor is memory traffic: each against streaming bandwidth and a loop of the same traffic (bench/stream.h), in the
// same turns.
#pragma once

#include "bench/stream.h"
#include "bench/turns.h"

namespace tessera::bench {

struct MemoryCase {
  std::string op;
  std::string pass;
  std::string shape;
  Traffic traffic;  // that the op needs at least, each operand counted once per unavoidable walk
  double array_bytes = 0;  // of each of the traffic's arrays
  Contestant ours;
  bool copies = false;  // from one tensor to another of the same size: no pass in place is its yardstick

  double bytes() const { return traffic.walks() * array_bytes; }
};

// What a case is called, and what makes it: one at a time in memory, with operands of about `megabytes` MiB each.
struct MemoryMaker {
  std::string op;
  std::string shape;
  std::function<MemoryCase()> make;
};
std::vector<MemoryMaker> memory_cases(std::int64_t megabytes, Device device = {});

// The line: op, pass, shape, rounds, tessera_ms, bytes, gbytes_per_second, stream (which pass was the fastest), stream_ms,
// stream_gbytes_per_second, ratio (share of the streaming bandwidth); on the CPU also traffic_ms, share_of_same_traffic, of the
// fastest loop that moves the same.
Value measure_memory(const MemoryCase& memory, std::int64_t megabytes, const TurnOptions& turns);

}  // namespace tessera::bench
