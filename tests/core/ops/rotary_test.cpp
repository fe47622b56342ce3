#include "core/ops/rotary.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/autograd/backward.h"
#include "core/ops/arithmetic.h"
#include "core/rng.h"
#include "tests/support/message_of.h"
#include "tests/support/relative_error.h"

namespace tessera {
namespace {

Tensor random(const Shape& shape, std::uint64_t index, DType dtype = DType::f32) {
  const Tensor x = Tensor::empty(shape, dtype);
  fill_uniform(x, RngStream(5, "rotary_test", "values"), -1, 1, index);
  return x;
}

// Element i is paired with element i + width / 2. The former is the real part.
TEST(Rotary, PairsElementsHalfAHeadApart) {
  const Var y =
      rotary(Var(Tensor::from(std::vector<double>{1, 10, 2, 20}, {1, 1, 1, 4})), {.heads = 1, .offset = 3, .base = 100});
  const double c = std::cos(3.0), s = std::sin(3.0), slow_c = std::cos(0.3), slow_s = std::sin(0.3);
  const std::vector<double> want{c - 2 * s, 10 * slow_c - 20 * slow_s, 2 * c + s, 20 * slow_c + 10 * slow_s};
  EXPECT_LE(relative_error(y.value().to_vector<double>(), want), 1e-15);
}

TEST(Rotary, APositionTurnsAsFarWhereverTheTensorBegins) {
  const Tensor x = random({2, 9, 3, 10}, 1);
  const Tensor all = rotary(Var(x), {.heads = 2}).value();
  const Tensor part = rotary(Var(x.slice(1, 4, 7)), {.heads = 2, .offset = 4}).value();
  EXPECT_EQ(part.to_vector<float>(), all.slice(1, 4, 7).contiguous().to_vector<float>());
}

TEST(Rotary, AScoreDependsOnTheDistanceAlone) {
  const Tensor q = random({1, 1, 1, 16}, 1, DType::f64), k = random({1, 1, 1, 16}, 2, DType::f64);
  const auto score = [&](std::int64_t query, std::int64_t key) {
    const std::vector<double> a = rotary(Var(q), {.heads = 1, .offset = query}).value().to_vector<double>();
    const std::vector<double> b = rotary(Var(k), {.heads = 1, .offset = key}).value().to_vector<double>();
    double sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
    return sum;
  };
  EXPECT_NEAR(score(7, 2), score(1005, 1000), 1e-12);
  EXPECT_GT(std::abs(score(7, 2) - score(7, 3)), 1e-3);
}

// The gradient is rotated in place only if nothing else holds it.
TEST(Rotary, LeavesAGradientAloneThatSomebodyElseHolds) {
  const Var x(random({2, 3, 4, 6}, 1), true);
  const Tensor grad = random({2, 3, 4, 6}, 2);
  const std::vector<float> before = grad.to_vector<float>();
  backward(rotary(x, {.heads = 3}), grad);
  EXPECT_EQ(grad.to_vector<float>(), before);
  const Tensor shared = x.grad();
  x.set_grad({});
  backward(mul_scalar(rotary(x, {.heads = 3}), 1), grad);  // only rotary holds the gradient that the product passes to it
  EXPECT_EQ(x.grad().to_vector<float>(), shared.to_vector<float>());
  EXPECT_NE(x.grad().to_vector<float>(), before);
}

TEST(Rotary, NamesWhatDoesNotFit) {
  const Var x(Tensor::full({2, 3, 4, 6}, 1.0));
  EXPECT_EQ(message_of<ShapeError>([] {
              rotary(Var(Tensor::full({2, 3, 4, 5}, 1.0)), {.heads = 1});
            }),
            "rotary: x is [2, 3, 4, 5]; needs [batch, positions, heads, width] with an even width");
  EXPECT_THROW(rotary(Var(Tensor::full({3, 4, 6}, 1.0)), {.heads = 1}), ShapeError);
  EXPECT_EQ(message_of<ConfigError>([&] { rotary(x, {.heads = 5}); }), "rotary: heads is 5, x is [2, 3, 4, 6]; needs 1 to 4");
  EXPECT_THROW(rotary(x, {.heads = 0}), ConfigError);
  EXPECT_EQ(message_of<ConfigError>([&] { rotary(x, {.heads = 1, .offset = -1}); }), "rotary: offset is -1; needs 0 or more");
  EXPECT_EQ(message_of<ConfigError>([&] { rotary(x, {.heads = 1, .base = 0}); }),
            "rotary: base is 0; needs a finite number above 0");
}

}  // namespace
}  // namespace tessera
