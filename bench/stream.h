// Streaming bandwidth: the passes of core/cpu/stream_peak.h over tensors that no cache holds, and one that only reads. The
// yardstick of memory-bound ops.
#pragma once

#include <span>
#include <vector>

#include "bench/turns.h"

namespace tessera::bench {

struct StreamSide {
  Contestant contestant;
  double bytes;  // that a call moves
};

// Every pass on two tensors of `megabytes` MiB each; without `in_place` only those that read one and write the other. On a GPU
// the driver's own copy from one to the other, whose rate no kernel that reads and writes is known to pass.
std::vector<StreamSide> stream_sides(std::int64_t megabytes, Device device = {}, bool in_place = true);

// What a loop moves, in arrays of one size: those that it reads, those that it changes in place, those that it writes only.
struct Traffic {
  int reads = 0, updates = 0, writes = 0;

  int walks() const { return reads + 2 * updates + writes; }
};

// Loops that move the same and hardly compute, over arrays of `bytes` each: where something is only written, once past the
// caches. On the CPU. Throws InternalError for a traffic that none of the measured ops has.
std::vector<StreamSide> traffic_sides(const Traffic& traffic, double bytes);

// Reads so many bytes, which no cache should hold, once: the least time of a product whose weights these are.
StreamSide read_side(std::int64_t bytes);

// GB/s in each round, where a call of `bytes` takes so many milliseconds.
std::vector<double> rates(double bytes, const Samples& ms);

// The side with the highest median rate, which need not take the shortest time. ms[i] are the samples of sides[i].
struct Streaming {
  std::string name;
  Samples ms;
  std::vector<double> gbytes_per_second;
};
Streaming fastest_stream(std::span<const StreamSide> sides, std::span<const Samples> ms);

}  // namespace tessera::bench
