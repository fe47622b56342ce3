// Intervals against printed tables of Student's t.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "train/report/statistics.h"
#include "train/tasks/builtin.h"

namespace tessera::testing {
namespace {

TEST(Statistics, QuantilesAreThoseOfPrintedTables) {
  const std::vector<std::pair<std::int64_t, double>> table{{1, 12.7062}, {2, 4.3027},  {3, 3.1824},  {4, 2.7764},  {5, 2.5706},
                                                           {9, 2.2622},  {10, 2.2281}, {29, 2.0452}, {30, 2.0423}, {120, 1.9799}};
  for (const auto& [freedom, quantile] : table) EXPECT_NEAR(student_t975(freedom), quantile, 5e-5) << freedom;
}

TEST(Statistics, IntervalsOfAMean) {
  const MeanInterval three = mean_interval(std::vector{1.0, 2.0, 3.0});
  EXPECT_EQ(three.n, 3);
  EXPECT_DOUBLE_EQ(three.mean, 2);
  EXPECT_NEAR(three.high - three.mean, 4.3027 / std::sqrt(3.0), 1e-4);
  EXPECT_EQ(verdict_of(three), Verdict::undecided);
  EXPECT_EQ(verdict_of(mean_interval(std::vector{2.0, 2.1, 1.9})), Verdict::higher);
  EXPECT_EQ(verdict_of(mean_interval(std::vector{-2.0, -2.1, -1.9})), Verdict::lower);
  EXPECT_EQ(verdict_of(mean_interval(std::vector{5.0})), Verdict::undecided) << "one seed says nothing";
  EXPECT_EQ(mean_interval({}).n, 0);
  EXPECT_EQ(sample_stddev(std::vector{7.0}), 0);
  EXPECT_EQ(mean_text(usual_metric(), {}), "-");
  EXPECT_EQ(mean_text(usual_metric(), std::vector{0.9, 0.92}), "91.00") << "a deviation of two runs says next to nothing";
  EXPECT_EQ(mean_text(usual_metric(), std::vector{0.9, 0.91, 0.92}), "91.00 ± 1.00");
}

}  // namespace
}  // namespace tessera::testing
