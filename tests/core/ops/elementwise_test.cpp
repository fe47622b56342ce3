// What the op table cannot check for elementwise ops: NaN, bounds, messages, skipped work.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "core/autograd/backward.h"
#include "core/ops/arithmetic.h"
#include "core/ops/gelu.h"
#include "core/ops/mse.h"
#include "core/ops/reduce.h"
#include "core/ops/relu.h"
#include "core/ops/softmax.h"
#include "core/ops/unary.h"
#include "core/ops/where.h"
#include "tests/support/message_of.h"

namespace tessera {
namespace {

class NanPropagation : public ::testing::TestWithParam<std::pair<const char*, std::function<Var(const Var&)>>> {};

// NaN in vector lanes and in the tail, forward and backward. Half of these files are built with fast-math.
TEST_P(NanPropagation, ReachesValueAndGradient) {
  for (const std::int64_t at : {0, 5, 17, 36}) {
    std::vector<float> values(37, 0.5f);
    values[static_cast<std::size_t>(at)] = std::numeric_limits<float>::quiet_NaN();
    const Var x(Tensor::from(values, {37}), true);
    const Var y = GetParam().second(x);
    EXPECT_TRUE(std::isnan(y.value().to_vector<float>()[static_cast<std::size_t>(at)])) << "at " << at;
    backward(sum(y));
    std::vector<float> upstream(37, 1.0f);
    upstream[static_cast<std::size_t>(at)] = std::numeric_limits<float>::quiet_NaN();
    const Var finite(Tensor::full({37}, 0.5), true);
    backward(GetParam().second(finite), Tensor::from(upstream, {37}));
    EXPECT_TRUE(std::isnan(finite.grad().to_vector<float>()[static_cast<std::size_t>(at)])) << "gradient at " << at;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Ops, NanPropagation,
    ::testing::Values(std::pair{"relu", [](const Var& x) { return relu(x); }},
                      std::pair{"exp", [](const Var& x) { return exp(x); }},
                      std::pair{"log", [](const Var& x) { return log(x); }},
                      std::pair{"sqrt", [](const Var& x) { return sqrt(x); }},
                      std::pair{"sigmoid", [](const Var& x) { return sigmoid(x); }},
                      std::pair{"tanh", [](const Var& x) { return tanh(x); }},
                      std::pair{"silu", [](const Var& x) { return silu(x); }},
                      std::pair{"gelu_erf", [](const Var& x) { return gelu(x); }},
                      std::pair{"gelu_tanh", [](const Var& x) { return gelu(x, GeluForm::tanh); }},
                      std::pair{"pow", [](const Var& x) { return pow(x, 3.0); }},
                      std::pair{"clamp", [](const Var& x) { return clamp(x, -1.0, 1.0); }},
                      std::pair{"softmax", [](const Var& x) { return softmax(x); }},
                      std::pair{"log_softmax", [](const Var& x) { return log_softmax(x); }}),
    [](const auto& test) { return std::string(test.param.first); });

TEST(Elementwise, ExtremesStayInRange) {
  const Var x(Tensor::from(std::vector<float>{-1000, -100, 0, 100, 1000}, {5}));
  EXPECT_EQ(sigmoid(x).value().to_vector<float>()[0], 0.0f);
  EXPECT_EQ(sigmoid(x).value().to_vector<float>()[4], 1.0f);
  EXPECT_EQ(tanh(x).value().to_vector<float>(), (std::vector<float>{-1, -1, 0, 1, 1}));
  EXPECT_EQ(gelu(x).value().to_vector<float>()[4], 1000.0f);
  EXPECT_EQ(log(Var(Tensor::zeros({9}))).value().to_vector<float>()[3], -std::numeric_limits<float>::infinity());
  for (const float y : silu(x).value().to_vector<float>()) EXPECT_FALSE(std::isnan(y));
  for (const float y : softmax(x).value().to_vector<float>()) EXPECT_TRUE(y >= 0.0f && y <= 1.0f);
}

TEST(Elementwise, ClampPassesTheGradientAtItsBounds) {
  const Var x(Tensor::from(std::vector<float>{-2, -1, 0, 1, 2}, {5}), true);
  const Var y = clamp(x, -1.0, 1.0);
  EXPECT_EQ(y.value().to_vector<float>(), (std::vector<float>{-1, -1, 0, 1, 1}));
  backward(sum(y));
  EXPECT_EQ(x.grad().to_vector<float>(), (std::vector<float>{0, 1, 1, 1, 0}));
  EXPECT_EQ(message_of([&] { clamp(x, 1.0, 0.0); }), "clamp: bounds are 1 and 0; needs low <= high");
}

TEST(Elementwise, WhereKeepsTheOtherOperandsNanOut) {
  const Tensor mask = Tensor::from(std::vector<std::uint8_t>{1, 0}, {2});
  const Var a(Tensor::full({2}, 1.0), true);
  const Var b(Tensor::from(std::vector<float>{std::nanf(""), 2}, {2}), true);
  const Var y = where(mask, a, b);
  EXPECT_EQ(y.value().to_vector<float>(), (std::vector<float>{1, 2}));
  backward(sum(y));
  EXPECT_EQ(a.grad().to_vector<float>(), (std::vector<float>{1, 0}));
  EXPECT_EQ(b.grad().to_vector<float>(), (std::vector<float>{0, 1}));
}

TEST(Elementwise, NamesBothOperands) {
  const Var a(Tensor::full({2, 3}, 1.0));
  const Var b(Tensor::full({3}, 1.0, DType::f64));
  EXPECT_EQ(message_of([&] { add(a, b); }), "add: dtypes differ: a is f32 [2, 3] on cpu, b is f64 [3] on cpu");
  EXPECT_EQ(message_of([&] { mul(a, Var(Tensor::full({2}, 1.0))); }),
            "mul: shapes do not broadcast: a is [2, 3], b is [2]; sizes must be equal or 1");
  EXPECT_EQ(message_of([&] { relu(Var(Tensor::full({2}, 1.0, DType::i64))); }),
            "relu: x is i64 [2] on cpu; needs f32, f64 or bf16");
  EXPECT_EQ(message_of([&] { mse(a, Var(Tensor::full({3}, 1.0))); }), "mse: shapes differ: x is [2, 3], target is [3]");
  EXPECT_EQ(message_of([&] { where(Tensor::full({3}, 1.0), a, a); }),
            "where: mask is f32 [3] on cpu; needs u8 (a is f32 [2, 3] on cpu)");
}

TEST(Elementwise, ConstantOperandsGetNoGradient) {
  const Var a(Tensor::full({3}, 2.0), true);
  const Var b(Tensor::full({3}, 4.0));
  for (const auto& f : {mul, div, add, sub, mse}) {
    backward(sum(f(a, b)));
    EXPECT_FALSE(b.grad().defined());
    backward(sum(f(b, a)));
    EXPECT_FALSE(b.grad().defined());
  }
  EXPECT_TRUE(a.grad().defined());
}

}  // namespace
}  // namespace tessera
