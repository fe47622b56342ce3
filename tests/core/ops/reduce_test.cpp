#include "core/ops/reduce.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/autograd/backward.h"
#include "core/rng.h"
#include "tests/support/message_of.h"

namespace tessera {
namespace {

TEST(Reduce, SumOfTenMillionSinglesIsExactToTheirPrecision) {
  const std::int64_t count = 10'000'000;
  const Var x(Tensor::full({count}, 0.1));
  const double expected = static_cast<double>(0.1f) * static_cast<double>(count);
  EXPECT_NEAR(sum(x).value().item() / expected, 1.0, 6e-8);  // half an ulp of f32
  EXPECT_NEAR(mean(x).value().item() / static_cast<double>(0.1f), 1.0, 6e-8);
  const Var columns(x.value().reshape({count / 10, 10}));
  for (const float total : sum(columns, {0}).value().to_vector<float>()) EXPECT_NEAR(10 * total / expected, 1.0, 6e-8);
}

TEST(Reduce, RepeatsBitForBit) {
  const Tensor x = Tensor::empty({1009, 37});
  fill_normal(x, RngStream(1, "x", "values"), 0.0, 1.0);
  for (const int axis : {0, 1}) {
    EXPECT_EQ(sum(Var(x), {axis}).value().to_vector<float>(), sum(Var(x), {axis}).value().to_vector<float>());
  }
}

TEST(Reduce, NanReachesEveryResult) {
  std::vector<float> values(12, 1.0f);
  values[7] = std::numeric_limits<float>::quiet_NaN();
  const Var x(Tensor::from(values, {3, 4}));
  EXPECT_TRUE(std::isnan(sum(x).value().item()));
  EXPECT_TRUE(std::isnan(mean(x).value().item()));
  EXPECT_TRUE(std::isnan(max(x, {0, 1}).value().item()));
  EXPECT_TRUE(std::isnan(max(x, {1}).value().to_vector<float>()[1]));
}

TEST(Reduce, MaxSendsTheGradientToTheFirstMaximum) {
  const Var x(Tensor::from(std::vector<float>{1, 3, 3, 5, 5, 2}, {2, 3}), true);
  backward(sum(max(x, {1})));
  EXPECT_EQ(x.grad().to_vector<float>(), (std::vector<float>{0, 1, 0, 1, 0, 0}));
}

TEST(Reduce, NamesIllegalAxes) {
  const Var x(Tensor::full({2, 3}, 1.0));
  EXPECT_EQ(message_of([&] { sum(x, {2}); }), "sum: axis 2 is out of range for 2 dimensions; legal: -2 to 1");
  EXPECT_EQ(message_of([&] { mean(x, {1, -1}); }), "mean: axis -1 stands twice; x is [2, 3]");
}

TEST(Reduce, RefusesToAverageNothing) {
  const Var x(Tensor::full({2, 0}, 1.0));
  EXPECT_EQ(message_of([&] { mean(x); }), "mean: no elements to average: x is [2, 0]");
  EXPECT_EQ(message_of([&] { max(x, {1}); }), "max: no elements to compare: x is [2, 0]");
  EXPECT_EQ(sum(x).value().item(), 0.0);
}

}  // namespace
}  // namespace tessera
