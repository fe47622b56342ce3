#include "core/device/turn_order.h"

#include <algorithm>
#include <bit>

#include "core/rng.h"

namespace tessera {

std::vector<std::int64_t> turn_order(std::int64_t round, std::int64_t count) {
  const auto number = static_cast<std::uint64_t>(round);
  std::vector<std::int64_t> order{0, 1};
  if (count != 2) order = random_permutation(RngStream(1, "clock", "order of turns"), number / 2, count);
  if (std::popcount(number) % 2 == 1) std::ranges::reverse(order);
  return order;
}

}  // namespace tessera
