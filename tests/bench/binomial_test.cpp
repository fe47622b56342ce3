#include "bench/binomial.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tessera::bench {
namespace {

TEST(Binomial, AtMostIsTheSumOfItsTerms) {
  EXPECT_NEAR(at_most(0, 3, 0.5), 0.125, 1e-12);
  EXPECT_NEAR(at_most(1, 3, 0.5), 0.5, 1e-12);
  EXPECT_NEAR(at_most(3, 3, 0.25), 1, 1e-12);
}

// Without a hit, (1 - p)^n = 0.05; with all hits, nothing is excluded.
TEST(Binomial, UpperBoundIsThatOfClopperAndPearson) {
  EXPECT_NEAR(upper_bound(0, 200), 1 - std::pow(0.05, 1.0 / 200), 2e-6);
  EXPECT_NEAR(upper_bound(1, 20), 0.216106, 2e-6);
  EXPECT_NEAR(upper_bound(20, 20), 1, 2e-6);
}

}  // namespace
}  // namespace tessera::bench
