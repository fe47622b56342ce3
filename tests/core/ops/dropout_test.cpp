#include "core/ops/dropout.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <cmath>

#include "core/autograd/backward.h"
#include "core/device/step_state.h"
#include "core/ops/reduce.h"

namespace tessera {
namespace {

std::vector<float> dropped(std::int64_t count, double p, const RngStream& stream, const StepStateData& data) {
  StepState state;
  state.set(data);
  return dropout(Var(Tensor::full({count}, 1.0)), p, stream, state.tensor()).value().to_vector<float>();
}

TEST(Dropout, MaskIsAFunctionOfStreamAndStep) {
  const RngStream stream(3, "layer1", "mask");
  const auto first = dropped(10007, 0.5, stream, {.step = 4});
  EXPECT_EQ(first, dropped(10007, 0.5, stream, {.step = 4}));
  EXPECT_NE(first, dropped(10007, 0.5, stream, {.step = 5}));
  EXPECT_NE(first, dropped(10007, 0.5, stream, {.step = 4, .micro_step = 1}));
  EXPECT_NE(first, dropped(10007, 0.5, RngStream(3, "layer2", "mask"), {.step = 4}));
}

TEST(Dropout, MaskDoesNotDependOnThreads) {
  const int before = omp_get_max_threads();
  omp_set_num_threads(1);
  const auto one = dropped(50021, 0.2, RngStream(3, "a", "mask"), {});
  omp_set_num_threads(3);
  const auto three = dropped(50021, 0.2, RngStream(3, "a", "mask"), {});
  omp_set_num_threads(before);
  EXPECT_EQ(one, three);
}

TEST(Dropout, KeepsTheExpectedShareAndScale) {
  const auto y = dropped(100003, 0.25, RngStream(1, "a", "mask"), {});
  std::int64_t kept = 0;
  for (const float value : y) {
    ASSERT_TRUE(value == 0.0f || value == static_cast<float>(1.0 / 0.75));
    kept += value != 0.0f;
  }
  EXPECT_NEAR(static_cast<double>(kept) / 100003, 0.75, 0.007);  // five standard deviations
}

TEST(Dropout, BackwardUsesTheForwardsMaskAfterTheStepMoved) {
  StepState state;
  const Var x(Tensor::full({1009}, 1.0), true);
  const Var y = dropout(x, 0.5, RngStream(1, "a", "mask"), state.tensor());
  const auto values = y.value().to_vector<float>();
  state.set({.step = 9});
  backward(sum(y));
  EXPECT_EQ(x.grad().to_vector<float>(), values);
}

TEST(Dropout, ZeroProbabilityReturnsTheInput) {
  const Var x(Tensor::full({3}, 1.0), true);
  EXPECT_EQ(dropout(x, 0.0, RngStream(), StepState().tensor()).node(), x.node());
}

TEST(Dropout, RefusesIllegalProbabilities) {
  const Var x(Tensor::full({3}, 1.0));
  for (const double p : {-0.1, 1.0, std::nan("")}) EXPECT_THROW(dropout(x, p, RngStream(), StepState().tensor()), ConfigError);
  try {
    dropout(x, 1.5, RngStream(), StepState().tensor());
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(), "dropout: p is 1.5; needs 0 <= p < 1");
  }
}

}  // namespace
}  // namespace tessera
