// Compares the scores by which weights are kept with their formulas.
#include "compress/prune/scores.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/support/error.h"
#include "layers/linear.h"
#include "layers/sequential.h"

namespace tessera::testing {
namespace {

class Scores : public ::testing::Test {
 protected:
  Scores() {
    model_.add_child("a", std::make_unique<Linear>(LinearConfig{.in = 5, .out = 4, .bias = false}));
    model_.add_child("b", std::make_unique<Linear>(LinearConfig{.in = 4, .out = 3, .bias = false}));
    initialize(model_, 1);
    for (const char* name : {"a", "b"}) {
      weights_.push_back({.path = name, .layer = name, .parameter = &model_.child(name).parameter("weight")});
    }
  }

  // The gradients of batch i are (i + 1) * 1e-12 * (k + 1) at element k, so small that their squares are 0 in f32.
  LossGradients gradients() {
    return [this](std::int64_t first, std::int64_t count, const std::function<void()>& each) {
      for (std::int64_t i = first; i < first + count; ++i) {
        for (const PrunedWeight& weight : weights_) {
          Tensor gradient = Tensor::empty(weight.parameter->value().shape());
          for (std::int64_t k = 0; k < gradient.numel(); ++k) gradient.data<float>()[k] = gradient_of(i, k);
          weight.parameter->set_grad(gradient);
        }
        each();
        for (const PrunedWeight& weight : weights_) weight.parameter->zero_grad();
      }
    };
  }
  static float gradient_of(std::int64_t batch, std::int64_t k) { return 1e-24F * static_cast<float>((batch + 1) * (k + 1)); }

  Sequential model_;
  std::vector<PrunedWeight> weights_;
};

TEST_F(Scores, TaylorIsTheSumOfSquaresOfGradientTimesWeight) {
  const std::vector<Tensor> scores = scores_of("taylor", weights_, {.gradients = gradients(), .first = 3, .batches = 2});
  ASSERT_EQ(scores.size(), 2u);
  std::vector<double> expected, found;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    const Tensor& value = weights_[i].parameter->value();
    for (std::int64_t k = 0; k < value.numel(); ++k) {
      double sum = 0;
      for (const std::int64_t batch : {3, 4}) {
        sum += std::pow(static_cast<double>(gradient_of(batch, k)) * static_cast<double>(value.data<float>()[k]), 2);
      }
      expected.push_back(sum);
      found.push_back(static_cast<double>(scores[i].data<float>()[k]));
    }
  }
  const double largest = *std::ranges::max_element(expected);
  EXPECT_EQ(*std::ranges::max_element(found), 1.0) << "a share of the largest";
  for (std::size_t k = 0; k < expected.size(); ++k) EXPECT_NEAR(found[k], expected[k] / largest, 1e-6);
}

TEST_F(Scores, WhatIsMaskedIsGone) {
  Tensor mask = Tensor::full(weights_[0].parameter->value().shape(), 1, DType::u8);
  mask.data<std::uint8_t>()[2] = 0;
  weights_[0].parameter->set_mask(mask);
  for (const char* score : {"magnitude", "taylor", "random"}) {
    const std::vector<Tensor> scores = scores_of(score, weights_, {.gradients = gradients()});
    EXPECT_EQ(scores[0].data<float>()[2], -1) << score;
    EXPECT_GE(scores[0].data<float>()[3], 0) << score;
    EXPECT_GE(scores[1].data<float>()[2], 0) << score;
  }
}

TEST_F(Scores, TaylorNeedsABatchWhoseGradientsAreFinite) {
  const LossGradients none = [](std::int64_t, std::int64_t, const std::function<void()>&) {};
  EXPECT_THROW(scores_of("taylor", weights_, {.gradients = none}), NumericError);
}

}  // namespace
}  // namespace tessera::testing
