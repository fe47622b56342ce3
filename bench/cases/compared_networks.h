// Our network with compressed layers beside ours dense of the same function: what such comparisons share.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/train_workload.h"
#include "bench/turns.h"
#include "compress/patterns/pattern.h"

namespace tessera::bench {

// Sets a mask of random scores, which the path tells from others: what the pattern keeps of them when it is to keep `density`.
// Returns how many that is to be.
std::int64_t mask_randomly(Parameter& weight, const std::string& path, const Pattern& pattern, double density);

struct Compared {
  std::string what;  // for messages and people
  double difference;  // of what the two compute, of the largest value
  std::vector<SelfTimed> sides;  // the compressed network, the dense one
};
struct Measured {
  std::vector<Samples> samples;  // of the sides
  double agreement;  // the difference
};
// Throws NumericError naming `what` where the two compute different things.
Measured measure_in_turn(const Compared& of, std::int64_t rounds);

struct ComparedSteps {
  std::string what;
  WorkloadConfig config;
  Change compressed;
  Change dense;  // to a network that computes the same
  std::int64_t losses = 1;  // of the first steps, which are the same
};
// Training steps: first the losses of both changed networks, then the time of the compressed one and that of the network as it
// is, whose optimiser has no masks to look at.
Measured measure_steps(const ComparedSteps& of, std::int64_t rounds);

// Sets rounds, factored (the compressed network, named) and rival, as {name, ms}, ratio (rival / factored), target, agreement.
void set_measured(Value& row, const std::string& compressed, const Measured& measured, double target);
// Prints a row that set_measured() has filled.
void print_measured(const std::string& what, const Value& row);

}  // namespace tessera::bench
