#include "core/autograd/numeric_check.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "core/autograd/backward.h"
#include "core/ops/arithmetic.h"
#include "core/ops/conv2d.h"
#include "core/ops/reduce.h"
#include "core/ops/relu.h"
#include "core/ops/unary.h"
#include "core/support/error.h"
#include "tests/support/message_of.h"

namespace tessera {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

Var leaf(std::vector<float> values) {
  const auto size = static_cast<std::int64_t>(values.size());
  return Var(Tensor::from(values, {size}), true);
}

std::string error_of(const std::function<void()>& body) {
  const NumericCheck check;
  return message_of<NumericError>(body);
}

TEST(NumericCheck, NamesTheOpThatMadeIt) {
  const Var x = leaf({1, -3e38f, 2});
  const ModulePath path = keep_path("layer1.0");
  EXPECT_EQ(
      error_of([&] {
        const ModuleScope scope(path);
        relu(mul_scalar(relu(mul_scalar(x, -1)), 2));
      }),
      "mul_scalar (layer1.0) forward made the first Inf: output f32 [3] at [1] is inf; its inputs were finite, up to 3e+38 in "
      "magnitude");
}

TEST(NumericCheck, TellsWhatAnOpWasGiven) {
  const Var x = leaf({1, 2});
  const Var y = Var(Tensor::full({2}, -kInf));
  EXPECT_EQ(error_of([&] { add(x, y); }), "add forward was given the first Inf: input 1 f32 [2] at [0] is -inf");
}

TEST(NumericCheck, NamesTheOpOfABackwardByThePathOfItsForward) {
  const ModulePath path = keep_path("fc");
  EXPECT_EQ(
      error_of([&] {
        const Var x = leaf({0, 4});
        Var y;
        {
          const ModuleScope scope(path);
          y = sqrt(x);
        }
        backward(sum(y));
      }),
      "sqrt (fc) backward made the first Inf: gradient of input 0 f32 [2] at [0] is inf; the gradient of its output was finite, "
      "up to 1 in magnitude");
}

TEST(NumericCheck, TellsThatAGradientCameInBad) {
  const Var x = leaf({1, 4});
  EXPECT_EQ(error_of([&] { backward(relu(x), Tensor::full({2}, kInf)); }),
            "relu backward was given the first Inf: the gradient of its output f32 [2] at [0] is inf");
}

TEST(NumericCheck, SeesGradientsThatOverflowInTheirSum) {
  const ModulePath path = keep_path("body");
  EXPECT_EQ(error_of([&] {
              const ModuleScope scope(path);
              const Var x = leaf({1});
              const Var y = relu(x);
              backward(add(y, y), Tensor::full({1}, 3e38));
            }),
            "the gradients of relu (body) add up to the first Inf: f32 [1] at [0] is inf");
}

TEST(NumericCheck, NamesAConvolutionWithItsRectifier) {
  const NoGrad no_grad;
  const Var image(Tensor::full({1, 1, 1, 2}, 3e38));
  const Var weight(Tensor::full({1, 1, 1, 2}, 1));
  EXPECT_EQ(
      error_of([&] { conv2d_relu(image, weight, Var(), Var()); }),
      "conv2d_relu forward made the first Inf: output f32 [1, 1, 1, 1] at [0, 0, 0, 0] is inf; its inputs were finite, up to "
      "3e+38 in magnitude");
}

TEST(NumericCheck, ChecksNothingOutsideItsScope) {
  EXPECT_FALSE(NumericCheck::active());
  EXPECT_EQ(error_of([] { EXPECT_TRUE(NumericCheck::active()); }), "");
  EXPECT_FALSE(NumericCheck::active());
  const Var x = leaf({3e38f});
  EXPECT_EQ(mul_scalar(x, 10).value().item(), kInf);
}

TEST(NumericCheck, LetsFiniteNumbersPass) {
  const Var x = leaf({3e38f, 0});
  EXPECT_EQ(error_of([&] { backward(sum(mul_scalar(relu(x), 0.5))); }), "");
  EXPECT_EQ(x.grad().to_vector<float>(), (std::vector<float>{0.5f, 0.0f}));
}

}  // namespace
}  // namespace tessera
