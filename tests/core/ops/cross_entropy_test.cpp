#include "core/ops/cross_entropy.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/autograd/backward.h"
#include "core/rng.h"
#include "core/storage.h"
#include "tests/support/message_of.h"
#include "tests/support/relative_error.h"

namespace tessera {
namespace {

Tensor labels(const std::vector<std::int64_t>& values) {
  return Tensor::from(values, {static_cast<std::int64_t>(values.size())});
}

std::string refusal(const Var& logits, const Tensor& targets, const CrossEntropyOptions& options = {}) {
  return message_of([&] { cross_entropy(logits, targets, options); });
}

TEST(CrossEntropy, IsStableForLargeLogits) {
  const Var x(Tensor::from(std::vector<float>{10000, -10000, 0, 1000, 1000, 1000}, {2, 3}), true);
  const Var loss = cross_entropy(x, labels({0, 1}));
  EXPECT_NEAR(loss.value().item(), std::log(3.0) / 2, 1e-6);
  backward(loss);
  for (const float g : x.grad().to_vector<float>()) EXPECT_TRUE(std::isfinite(g));
}

TEST(CrossEntropy, NanAndInfinityReachTheLoss) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  for (const float bad : {nan, infinity}) {
    for (std::size_t at = 0; at < 6; ++at) {
      std::vector<float> values(6, 0.5f);
      values[at] = bad;
      const Var loss = cross_entropy(Var(Tensor::from(values, {2, 3})), labels({0, 1}));
      EXPECT_TRUE(std::isnan(loss.value().item())) << bad << " at " << at;
    }
  }
}

TEST(CrossEntropy, AMaskedClassCostsNothing) {
  const float minus_infinity = -std::numeric_limits<float>::infinity();
  const Var loss = cross_entropy(Var(Tensor::from(std::vector<float>{0, 0, minus_infinity}, {1, 3})), labels({0}));
  EXPECT_NEAR(loss.value().item(), std::log(2.0), 1e-6);
}

TEST(CrossEntropy, AllIgnoredGivesZeroLossAndGradient) {
  const Var x(Tensor::full({2, 3}, 1.0), true);
  const Var loss = cross_entropy(x, labels({-100, -100}));
  EXPECT_EQ(loss.value().item(), 0.0);
  backward(loss);
  EXPECT_EQ(x.grad().to_vector<float>(), std::vector<float>(6, 0.0f));
}

// Neither pass allocates a second matrix of the logits' size, except for their gradient.
TEST(CrossEntropy, TakesTheMemoryOfTheGradientAlone) {
  const std::int64_t n = 16, classes = 5003;
  const Tensor values = Tensor::empty({n, classes}, DType::f32);
  fill_normal(values, RngStream(1, "cross_entropy", "logits"), 0.0, 3.0);
  const Var logits(values, true);
  const Tensor targets = labels(std::vector<std::int64_t>(n, 4));
  const std::size_t before = memory_stats(Device::cpu()).in_use;
  reset_peak_memory(Device::cpu());
  const Var loss = cross_entropy(logits, targets);
  EXPECT_LT(memory_stats(Device::cpu()).peak, before + values.bytes() / 8);
  backward(loss);
  EXPECT_LT(memory_stats(Device::cpu()).peak, before + values.bytes() + values.bytes() / 8);
}

// Rows as long as a vocabulary: far more classes than a softmax holds in the first-level cache.
TEST(CrossEntropy, ARowsGradientIsItsProbabilitiesLessTheTarget) {
  for (const std::int64_t classes : {256, 50257}) {
    const Tensor values = Tensor::empty({3, classes}, DType::f32);
    fill_normal(values, RngStream(1, "cross_entropy", "logits"), 0.0, 3.0);
    const Var logits(values, true);
    backward(cross_entropy(logits, labels({0, -100, classes - 1})));
    std::vector<double> want;
    for (const std::int64_t row : {0, 1, 2}) {
      const float* const x = values.data<float>() + row * classes;
      double total = 0;
      for (std::int64_t k = 0; k < classes; ++k) total += std::exp(double{x[k]});
      for (std::int64_t k = 0; k < classes; ++k) {
        const double target = k == (row == 0 ? 0 : classes - 1) ? 1 : 0;
        want.push_back(row == 1 ? 0 : (std::exp(double{x[k]}) / total - target) / 2);
      }
    }
    EXPECT_LE(relative_error(logits.grad().to(DType::f64).to_vector<double>(), want), 1e-6) << classes;
  }
}

TEST(CrossEntropy, WithoutAGraphTheLossIsTheSame) {
  for (const std::int64_t classes : {1, 7, 1000}) {
    const Tensor logits = Tensor::empty({3, classes}, DType::f32);
    fill_normal(logits, RngStream(1, "cross_entropy", "logits"), 0.0, 3.0);
    for (const CrossEntropyOptions& options : {CrossEntropyOptions{}, CrossEntropyOptions{.label_smoothing = 0.1}}) {
      const Tensor targets = labels({0, -100, classes - 1});
      const Var recorded = cross_entropy(Var(logits, true), targets, options);
      const Var alone = cross_entropy(Var(logits), targets, options);
      EXPECT_EQ(alone.value().item(), recorded.value().item()) << classes << " classes, smoothing " << options.label_smoothing;
    }
  }
}

TEST(CrossEntropy, NamesTheLabelOutOfRange) {
  const Var x(Tensor::full({3, 10}, 1.0));
  EXPECT_EQ(refusal(x, labels({1, 10, 2})),
            "cross_entropy: label out of range: labels[1] is 10; needs 0 to 9 for 10 classes, or ignore_index -100");
  EXPECT_THROW(cross_entropy(x, labels({1, -1, 2})), ShapeError);
}

TEST(CrossEntropy, NamesOperandsThatDoNotFit) {
  const Var x(Tensor::full({3, 10}, 1.0));
  EXPECT_EQ(refusal(x, labels({1, 2})),
            "cross_entropy: shapes do not fit: logits is [3, 10], labels is [2]; needs [n, classes] and [n]");
  EXPECT_EQ(refusal(x, Tensor::zeros({3}, DType::i32)),
            "cross_entropy: labels is i32 [3] on cpu; needs i64 (logits is f32 [3, 10] on cpu)");
  EXPECT_EQ(refusal(x, labels({1, 2, 3}), {.label_smoothing = 1.0}),
            "cross_entropy: label_smoothing is 1; needs 0 <= label_smoothing < 1");
}

}  // namespace
}  // namespace tessera
