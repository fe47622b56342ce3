// The ranks of a weight that is held in factors, by name and in the form's own order: {{"out", 32}, {"in", 64}}.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/config/value.h"

namespace tessera {

struct Rank {
  std::string name;
  std::int64_t value = 1;
  friend bool operator==(const Rank&, const Rank&) = default;
};
using Ranks = std::vector<Rank>;

std::string to_string(const Ranks& ranks);  // "out 32 in 64"

Value to_value(const Ranks& ranks);  // {out: 32, in: 64}
Ranks ranks_from(const Value& map);

// What is wrong with one of several ranks, judged together: "out rank is 9, the mode has size 8; legal range is 1..8".
struct RankProblem {
  std::string rank;
  std::string message;
};

// Throws ConfigError on the first problem: "layer 'conv1': ..." with a path, "tucker2_conv2d: ..." without one.
void check_ranks(const std::string& path, const std::string& kind, const std::vector<RankProblem>& problems);

// The problem of a rank outside of 1..size; none within.
void append_range_problem(const std::string& rank, std::int64_t value, std::int64_t size, std::vector<RankProblem>& problems);

}  // namespace tessera
