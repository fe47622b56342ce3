#include "core/device/turn_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace tessera {
namespace {

TEST(TurnOrder, OfTwoSidesEachIsFirstAsOftenInEveryBatch) {
  for (const std::int64_t rounds : {2, 4, 8, 16}) {
    std::int64_t begun = 0;  // batches in which side 0 goes first
    for (std::int64_t batch = 0; batch < 10; ++batch) {
      std::int64_t first = 0;
      for (std::int64_t round = batch * rounds; round < (batch + 1) * rounds; ++round)
        first += turn_order(round, 2)[0] == 0 ? 1 : 0;
      EXPECT_EQ(first, rounds / 2) << "batch " << batch << " of " << rounds;
      begun += turn_order(batch * rounds, 2)[0] == 0 ? 1 : 0;
    }
    EXPECT_EQ(begun, 5) << rounds;
  }
}

TEST(TurnOrder, PairsOfRoundsAreEachOthersReverseAndManySidesChangeTheirNeighbours) {
  for (const std::int64_t count : {1, 2, 3, 5}) {
    std::set<std::vector<std::int64_t>> seen;
    for (std::int64_t round = 0; round < 40; round += 2) {
      std::vector<std::int64_t> order = turn_order(round, count);
      seen.insert(order);
      std::vector<std::int64_t> next = turn_order(round + 1, count);
      std::ranges::reverse(next);
      EXPECT_EQ(order, next);
      std::ranges::sort(order);
      for (std::int64_t side = 0; side < count; ++side) EXPECT_EQ(order[static_cast<std::size_t>(side)], side);
    }
    if (count > 2) {
      EXPECT_GT(seen.size(), 4u) << count;
    }
  }
}

}  // namespace
}  // namespace tessera
