// Work on a GPU, timed without its launches and without what its caches kept: a graph that was recorded once runs many calls,
// each on the next of several sets of tensors, which no cache holds together.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "bench/turns.h"

namespace tessera::bench {

// One side of a comparison, on any of the sets.
struct RotatedSide {
  std::string name;
  std::function<void(std::size_t set)> run;  // queues one call and does not wait
  Tensor output;  // of set 0, contiguous
  std::function<Tensor(const Tensor& output)> in_order = {};  // brings it into the order of the other sides'; none: it is in it

  Tensor result() const { return in_order ? in_order(output) : output; }
};

// A rival that takes no part.
struct Refused {
  std::string name, why;
};

struct RotatedCase {
  std::string op, shape, pass, precision;
  double flops = 0;  // of a call
  std::size_t sets = 1;
  std::vector<RotatedSide> ours;  // one, or several ways of ours; the first is compared with the rivals
  std::vector<RotatedSide> rivals;
  std::vector<RotatedSide> dense = {};  // the same by libraries that skip nothing: timed beside the rivals, not one of them
  std::vector<Refused> unsupported = {};  // rivals that cannot be called
  double tolerance = 0;  // of the largest value, between any two sides
};

// How many sets of `bytes` each are beyond the second-level cache of any GPU there is.
std::size_t sets_beyond_caches(double bytes);

// A tensor for each set: other numbers in every one, or nothing yet.
std::vector<Tensor> random_sets(const Shape& shape, std::string_view name, DType dtype, Device device, std::size_t sets);
std::vector<Tensor> empty_sets(const Shape& shape, DType dtype, Device device, std::size_t sets);

// Its run replays a graph of `calls` calls, set after set. Runs every set once before. Throws DeviceError where the side's work
// cannot be recorded.
Contestant recorded(const RotatedSide& side, Device device, std::size_t sets, std::size_t calls);

// A multiple of `sets` whose calls take about a millisecond: a replay's own costs are then small.
std::size_t calls_per_replay(const RotatedSide& side, Device device, std::size_t sets);

// Leaves out, with the reason, rivals that disagree with ours or cannot be recorded; throws InternalError where none is left of
// those that there are. Times all the others once, records and sweeps those near the fastest, and times the best in turns with
// ours; likewise the dense sides. Throws NumericError where further ways of ours disagree with the first. The line: op, shape,
// pass, precision, rounds, sets, calls, tessera_ms, rivals_timed, rival_sweep, dense_timed, dense_sweep, rivals_refused [{name,
// why}], gflops; where there are rivals, rival {name, ms} and ratio (rival / tessera); where there are dense sides, dense and
// dense_ratio; of further ways of ours `ways` [{name, ms, ratio (the way's time over the first's)}].
Value measure_rotated(const RotatedCase& rotated, Device device, std::int64_t rounds);

}  // namespace tessera::bench
