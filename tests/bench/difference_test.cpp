#include "bench/difference.h"

#include <gtest/gtest.h>

#include "tests/support/message_of.h"

namespace tessera::bench {
namespace {

TEST(Difference, IsTheLargestAndRelativeToTheLargestExpectedValue) {
  const Difference difference = difference_of(std::vector<double>{1, -4, 2}, std::vector<float>{1.5f, -3, 2});
  EXPECT_EQ(difference.distance, 1);
  EXPECT_EQ(difference.largest, 4);
  EXPECT_EQ(difference.relative(), 0.25);
}

TEST(Difference, OfANaNOnEitherSideIsInfiniteWhateverFollows) {
  const std::vector<float> numbers{1, 2}, broken{NAN, 2};
  EXPECT_EQ(difference_of(numbers, broken).relative(), INFINITY);
  EXPECT_EQ(difference_of(broken, numbers).relative(), INFINITY);
  EXPECT_EQ(difference_of(broken, broken).relative(), INFINITY);
}

TEST(Difference, OfZerosIsNone) {
  const std::vector<float> zeros(3), ones(3, 1);
  EXPECT_EQ(difference_of(zeros, zeros).relative(), 0);
  EXPECT_EQ(difference_of(zeros, ones).relative(), INFINITY);
  EXPECT_EQ(difference_of(std::vector<float>{}, std::vector<float>{}).relative(), 0);
}

TEST(Difference, RefusesAnotherNumberOfValues) {
  EXPECT_EQ(message_of<InternalError>([] { difference_of(std::vector<float>{1}, std::vector<float>{}); }),
            "difference: 1 values and 0");
}

}  // namespace
}  // namespace tessera::bench
