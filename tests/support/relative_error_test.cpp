#include "tests/support/relative_error.h"

#include <gtest/gtest.h>

namespace tessera {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinite = std::numeric_limits<double>::infinity();

TEST(RelativeError, IsTheLargestDifferenceOverTheLargestExpected) {
  EXPECT_DOUBLE_EQ(relative_error({1, -4.5, 0}, {1, -4, 0.25}), 0.125);
  EXPECT_EQ(relative_error({3, 0}, {3, 0}), 0);
  EXPECT_GT(relative_error({1e-9}, {0}), 1);
}

TEST(RelativeError, NothingPassesBesideWhatIsNotFinite) {
  for (const double bad : {kNan, kInfinite, -kInfinite}) {
    EXPECT_EQ(relative_error({1, bad}, {1, 2}), kInfinite);
    EXPECT_EQ(relative_error({1, 2}, {1, bad}), kInfinite);
    EXPECT_EQ(relative_error({1, 2}, {bad, 2}), kInfinite);
    EXPECT_EQ(relative_error({1, bad}, {1, bad}), kInfinite);
  }
}

TEST(RelativeError, NothingPassesWhereTheSizesDiffer) {
  EXPECT_EQ(relative_error(std::vector<double>{1}, std::vector<double>{1, 1}), kInfinite);
  EXPECT_EQ(relative_error(Tensor::zeros({2, 3}), Tensor::zeros({3, 2})), kInfinite);
}

}  // namespace
}  // namespace tessera
