// The order of those who are timed in turn.
#pragma once

#include <cstdint>
#include <vector>

namespace tessera {

// 0..count-1 in the order of this round: at random, so that no side always follows the same one and finds its caches, and the
// same order in every run.
std::vector<std::int64_t> turn_order(std::int64_t round, std::int64_t count);

}  // namespace tessera
