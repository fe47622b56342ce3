#include "core/support/counting.h"

#include <gtest/gtest.h>

#include <vector>

namespace tessera {
namespace {

constexpr std::int64_t kMillion = std::int64_t{1} << 20;

TEST(Counting, ElementsHaveALimitThatNoZeroHides) {
  const auto countable = [](const std::vector<std::int64_t>& sizes) { return can_be_counted(sizes); };
  EXPECT_TRUE(countable({}));
  EXPECT_TRUE(countable({kMillion, 1, kMillion}));
  EXPECT_FALSE(countable({kMillion, kMillion + 1}));
  EXPECT_FALSE(countable({kMillion, 2, kMillion}));
  EXPECT_TRUE(countable({0, kMostElements}));
  EXPECT_FALSE(countable({0, kMostElements + 1}));
  EXPECT_FALSE(countable({kMostElements, kMostElements, 0}));
}

TEST(Counting, ResultsThatNoNumberHoldsAreTheLargestNumber) {
  EXPECT_EQ(product_of({}), 1);
  EXPECT_EQ(product_of({7, 11, 0}), 0);
  EXPECT_EQ(product_of({std::int64_t{1} << 32, std::int64_t{1} << 30}), std::int64_t{1} << 62);
  EXPECT_EQ(product_of({std::int64_t{1} << 32, std::int64_t{1} << 31}), kUncounted);
  EXPECT_EQ(product_of({kUncounted, 2}), kUncounted);
  EXPECT_EQ(sum_of({}), 0);
  EXPECT_EQ(sum_of({std::int64_t{1} << 62, (std::int64_t{1} << 62) - 2}), kUncounted - 1);
  EXPECT_EQ(sum_of({std::int64_t{1} << 62, std::int64_t{1} << 62}), kUncounted);
  EXPECT_EQ(sum_of({kUncounted, 0, 1}), kUncounted);
}

}  // namespace
}  // namespace tessera
