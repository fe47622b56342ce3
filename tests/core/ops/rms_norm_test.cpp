#include "core/ops/rms_norm.h"

#include <gtest/gtest.h>

#include "core/autograd/backward.h"
#include "tests/support/message_of.h"

namespace tessera {
namespace {

Var ones(const Shape& shape, bool requires_grad = false) { return Var(Tensor::full(shape, 1.0), requires_grad); }

TEST(RmsNorm, NamesWhatDoesNotFit) {
  EXPECT_EQ(message_of<ShapeError>([] {
              rms_norm(ones({2, 3}), ones({4}), 1e-5);
            }),
            "rms_norm: gamma does not fit: x is [2, 3], gamma is [4]; gamma must be [x.dim(-1)]");
  EXPECT_EQ(message_of<ShapeError>([] { rms_norm(ones({}), ones({1}), 1e-5); }),
            "rms_norm: x is a scalar; needs at least 1 dimension");
  EXPECT_THROW(rms_norm(Var(Tensor::full({2, 3}, 1.0, DType::f64)), ones({3}), 1e-5), DTypeError);
}

// A row of zeros is divided by the root of eps; without eps it would be NaN.
TEST(RmsNorm, EpsHoldsUpARowOfZeros) {
  const Var x(Tensor::zeros({1, 3}), true);
  backward(rms_norm(x, ones({3}), 1e-4), Tensor::from(std::vector<float>{1, 2, 3}, {1, 3}));
  const std::vector<float> grad = x.grad().to_vector<float>();
  for (std::size_t i = 0; i < 3; ++i) EXPECT_FLOAT_EQ(grad[i], 100 * static_cast<float>(i + 1));
}

TEST(RmsNorm, GivesOnlyTheGradientThatIsAskedFor) {
  const Var x = ones({2, 3}, true), gamma = ones({3}), fixed = ones({2, 3}), scale = ones({3}, true);
  backward(rms_norm(x, gamma, 1e-5), Tensor::full({2, 3}, 1.0));
  EXPECT_TRUE(x.grad().defined());
  EXPECT_FALSE(gamma.grad().defined());
  backward(rms_norm(fixed, scale, 1e-5), Tensor::full({2, 3}, 1.0));
  EXPECT_FALSE(fixed.grad().defined());
  EXPECT_NEAR(scale.grad().to_vector<float>()[1], 2, 1e-4);
}

}  // namespace
}  // namespace tessera
