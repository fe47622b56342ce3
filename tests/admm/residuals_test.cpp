#include "admm/residuals.h"

#include <gtest/gtest.h>

#include "core/config/read.h"

namespace tessera {
namespace {

std::vector<Residuals> course(const std::vector<double>& relative) {
  std::vector<Residuals> history;
  for (const double value : relative) {
    history.push_back({.step = std::ssize(history), .rho = 1, .primal = value, .dual = value, .relative = value, .layer = "a"});
  }
  return history;
}

TEST(AdmmResiduals, FallOrStallOrDiverge) {
  EXPECT_EQ(course_of({}), Course::falling);
  EXPECT_EQ(course_of(course({0.9, 0.5, 0.4, 0.3, 0.2, 0.1})), Course::falling);
  EXPECT_EQ(course_of(course({0.3, 0.3, 0.3, 0.3, 0.3})), Course::falling) << "too early to say";
  EXPECT_EQ(course_of(course({0.3, 0.3, 0.3, 0.3, 0.3, 0.28})), Course::stalled);
  EXPECT_EQ(course_of(course({0.3, 0.3, 0.3, 0.3, 0.3, 0.26})), Course::falling);
  EXPECT_EQ(course_of(course({0.3, 0.6, 0.9, 0.6, 0.3, 0.6, 0.9, 0.3})), Course::stalled) << "it swings";
  EXPECT_EQ(course_of(course({0.009, 0.009, 0.009, 0.009, 0.009, 0.009})), Course::falling) << "they agree";
  EXPECT_EQ(course_of(course({0.3, 10.1})), Course::diverged);
}

TEST(AdmmResiduals, AreReadAsTheyWereWritten) {
  const Residuals before{.step = 7, .rho = 0.1, .primal = 1.0 / 3, .dual = 2.0 / 3, .relative = 1e-3, .layer = "layer1.0.conv2"};
  const Residuals after = read<Residuals>(parse_json(to_json(write(before)), "test"));
  EXPECT_TRUE(write(after) == write(before));
  EXPECT_EQ(after.primal, before.primal);
  EXPECT_EQ(after.layer, before.layer);
}

}  // namespace
}  // namespace tessera
