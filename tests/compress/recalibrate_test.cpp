#include "compress/recalibrate.h"

#include <gtest/gtest.h>

#include <limits>

#include "core/support/error.h"
#include "layers/batch_norm.h"
#include "layers/conv2d.h"
#include "layers/sequential.h"
#include "tests/core/linalg/linalg_support.h"
#include "tests/support/message_of.h"

namespace tessera::testing {
namespace {

constexpr std::int64_t kBatch = 6;

std::unique_ptr<Sequential> network(double momentum) {
  auto root = std::make_unique<Sequential>();
  root->add_child("first", std::make_unique<BatchNorm>(BatchNormConfig{.channels = 3, .momentum = momentum}));
  root->add_child("conv", std::make_unique<Conv2d>(Conv2dConfig{.in = 3, .out = 5}));
  root->add_child("second", std::make_unique<BatchNorm>(BatchNormConfig{.channels = 5}));
  initialize(*root, 1);
  return root;
}

Tensor batch_of(std::int64_t i) { return random_tensor({kBatch, 4, 5, 3}, DType::f32, 10 + static_cast<std::uint64_t>(i)); }

// The mean and the unbiased variance of one channel of x [..., channels].
std::pair<double, double> statistics(const Tensor& x, std::int64_t channel) {
  const std::vector<double> all = values(x);
  const std::int64_t channels = x.dim(-1), rows = x.numel() / channels;
  double mean = 0, squares = 0;
  for (std::int64_t i = 0; i < rows; ++i)
    mean += all[static_cast<std::size_t>(i * channels + channel)] / static_cast<double>(rows);
  for (std::int64_t i = 0; i < rows; ++i) {
    const double d = all[static_cast<std::size_t>(i * channels + channel)] - mean;
    squares += d * d;
  }
  return {mean, squares / static_cast<double>(rows - 1)};
}

std::vector<NamedTensor> parts_of(std::int64_t i) { return {{"x", batch_of(i)}}; }

void expect_mean_of_batches(const Module& norm, const std::function<Tensor(std::int64_t)>& x, std::int64_t count) {
  for (std::int64_t c = 0; c < x(0).dim(-1); ++c) {
    double mean = 0, variance = 0;
    for (std::int64_t i = 0; i < count; ++i) {
      const auto [m, v] = statistics(x(i), c);
      mean += m / static_cast<double>(count);
      variance += v / static_cast<double>(count);
    }
    EXPECT_NEAR(values(norm.buffers()[0]->value)[static_cast<std::size_t>(c)], mean, 1e-5);
    EXPECT_NEAR(values(norm.buffers()[1]->value)[static_cast<std::size_t>(c)], variance, 1e-5);
  }
}

TEST(Recalibrate, GivesTheMeanOfTheBatches) {
  const auto root = network(0.3);
  root->child("first").buffers()[0]->value.fill(100);  // recalibration discards earlier values
  const std::vector<double> weight = values(root->child("conv").parameter("weight").value());
  const TrainingBatches batches{.parts = parts_of};
  EXPECT_TRUE(recalibrate(*root, batches, 4));
  expect_mean_of_batches(root->child("first"), batch_of, 4);
  // In training the second norm sees what the first one has normalised by each batch's statistics.
  const auto behind = [&](std::int64_t i) {
    const auto copy = network(0.3);
    const NoGrad no_grad;
    const StepState step;
    const Context training{.training = true, .step = &step};
    return copy->child("conv")(copy->child("first")(Var(batch_of(i)), training), training).value();
  };
  expect_mean_of_batches(root->child("second"), behind, 4);
  EXPECT_EQ(values(root->child("conv").parameter("weight").value()), weight);
  const std::vector<double> once = values(root->child("second").buffers()[1]->value);
  recalibrate(*root, batches, 4);
  EXPECT_EQ(values(root->child("second").buffers()[1]->value), once);
}

TEST(Recalibrate, LeavesAFrozenNormAndEveryNormWithoutBatches) {
  const auto root = network(0);
  root->child("first").buffers()[0]->value.fill(7);
  recalibrate(*root, {.parts = parts_of}, 2);
  EXPECT_EQ(values(root->child("first").buffers()[0]->value), (std::vector<double>{7, 7, 7}));
  const std::vector<double> second = values(root->child("second").buffers()[0]->value);
  EXPECT_FALSE(recalibrate(*root, {.parts = {}}, 0));
  EXPECT_EQ(values(root->child("second").buffers()[0]->value), second);
}

TEST(Recalibrate, RefusesStatisticsOfNan) {
  const auto root = network(0.3);
  const TrainingBatches broken{.parts = [](std::int64_t) {
    return std::vector<NamedTensor>{{"x", Tensor::full({2, 4, 5, 3}, std::numeric_limits<double>::infinity())}};
  }};
  EXPECT_EQ(message_of<NumericError>([&] { recalibrate(*root, broken, 1); }),
            "first.running_mean: its values on the training batches hold NaN or Inf");
}

}  // namespace
}  // namespace tessera::testing
