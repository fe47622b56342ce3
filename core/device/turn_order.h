// The order in which several sides are timed in turn.
#pragma once

#include <cstdint>
#include <vector>

namespace tessera {

// 0..count-1 in the order of this round, the same in every run. Rounds 2k and 2k + 1 are each other's reverse, so that an even
// number of rounds favours no side that runs first. Two sides take turns in the order of Thue and Morse (which of them is first
// follows the parity of the ones in the round's number), so that neither a drift nor a batch of 4, 8 or 16 rounds favours one
// either. More sides begin each pair of rounds at random: no side always follows the same one and finds its caches.
std::vector<std::int64_t> turn_order(std::int64_t round, std::int64_t count);

}  // namespace tessera
