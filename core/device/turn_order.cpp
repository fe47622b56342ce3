#include "core/device/turn_order.h"

#include "core/rng.h"

namespace tessera {

std::vector<std::int64_t> turn_order(std::int64_t round, std::int64_t count) {
  return random_permutation(RngStream(1, "clock", "order of turns"), static_cast<std::uint64_t>(round), count);
}

}  // namespace tessera
