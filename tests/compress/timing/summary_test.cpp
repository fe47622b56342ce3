#include "compress/timing/summary.h"

#include <gtest/gtest.h>

#include <numeric>

namespace tessera {
namespace {

std::vector<double> numbers(int count) {  // 1, 2, ..., count
  std::vector<double> values(static_cast<std::size_t>(count));
  std::iota(values.begin(), values.end(), 1.0);
  return values;
}

TEST(Summary, InterpolatesBetweenOrderStatistics) {  // numpy.quantile([1, 2, 4, 8], [0.1, 0.5, 0.9])
  const Summary summary = summarise({8, 1, 4, 2});
  EXPECT_DOUBLE_EQ(summary.p10, 1.3);
  EXPECT_DOUBLE_EQ(summary.median, 3.0);
  EXPECT_DOUBLE_EQ(summary.p90, 6.8);
  EXPECT_DOUBLE_EQ(quantile({7}, 0.3), 7.0);
}

// The ranks of binomial tables: of 60 samples the 22nd from either end (coverage 0.960), of 50 the 18th (0.967).
TEST(Summary, TheMediansIntervalIsTheBinomialOne) {
  const MedianInterval of_60 = median_interval(numbers(60));
  EXPECT_DOUBLE_EQ(of_60.median, 30.5);
  EXPECT_DOUBLE_EQ(of_60.low, 22);
  EXPECT_DOUBLE_EQ(of_60.high, 39);
  EXPECT_DOUBLE_EQ(median_interval(numbers(50)).low, 18);
  EXPECT_DOUBLE_EQ(median_interval(numbers(6)).low, 1);
  EXPECT_DOUBLE_EQ(median_interval(numbers(9)).low, 2);
}

TEST(Summary, FewSamplesGiveTheirExtremesAndManyDoNotUnderflow) {
  EXPECT_DOUBLE_EQ(median_interval({3, 1, 2}).low, 1);
  EXPECT_DOUBLE_EQ(median_interval({3, 1, 2}).high, 3);
  EXPECT_DOUBLE_EQ(median_interval({5}).low, 5);
  const MedianInterval many = median_interval(numbers(10000));  // 5000 -+ 1.96 * sqrt(10000) / 2
  EXPECT_NEAR(many.low, 4902, 2);
  EXPECT_NEAR(many.high, 5099, 2);
}

TEST(Summary, RatiosAreWeighedByTheirLogarithms) {
  EXPECT_DOUBLE_EQ(median_ratio({2, 0.5}), 1);
  EXPECT_DOUBLE_EQ(median_ratio({4, 4, 4, 0.25, 0.25, 0.25}), 1);
  const MedianInterval of_ten = ratio_interval({0.25, 0.5, 1, 1, 1, 4, 4, 4, 8, 16});
  EXPECT_DOUBLE_EQ(of_ten.median, 2);
  EXPECT_DOUBLE_EQ(of_ten.low, 0.5) << "the second smallest of ten";
  EXPECT_DOUBLE_EQ(of_ten.high, 8);
}

}  // namespace
}  // namespace tessera
