// The convolution with a fused ReLU, and constant weights, under every algorithm that a clock may choose.
#include <gtest/gtest.h>

#include "core/autograd/backward.h"
#include "core/device/constant_weights.h"
#include "core/device/decisions.h"
#include "core/ops/arithmetic.h"
#include "core/ops/relu.h"
#include "tests/core/ops/conv2d_cases.h"
#include "tests/support/message_of.h"
#include "tests/support/relative_error.h"

namespace tessera::testing {
namespace {

struct Operands {
  Var x, weight, bias, residual;
  Conv2dOptions options;
};

Operands operands(const ConvCase& c, bool with_residual, DType dtype = DType::f32) {
  const auto make = [&](const Shape& shape, std::uint64_t index) {
    return Var(off_alignment(random_values(shape, index).to(dtype)));
  };
  const Shape y = conv2d_output_shape(c.x, c.weight, c.options);
  return {make(c.x, 0), make(c.weight, 1), c.bias ? make({c.weight[0]}, 2) : Var(), with_residual ? make(y, 3) : Var(),
          c.options};
}

std::vector<double> run(const Operands& in) {
  return conv2d_relu(in.x, in.weight, in.bias, in.residual, in.options).value().to(DType::f64).to_vector<double>();
}

std::vector<double> reference(const ConvCase& c, bool with_residual) {
  const Operands in = operands(c, with_residual, DType::f64);
  const Var y = conv2d(in.x, in.weight, in.bias, in.options);
  return relu(with_residual ? add(y, in.residual) : y).value().to_vector<double>();
}

class Conv2dReluAlgorithm : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (GetParam() == "winograd" && !onednn_has_winograd()) GTEST_SKIP() << "oneDNN's Winograd needs AVX-512";
  }

  const NoGrad no_grad_;
  const DecisionScope scope_{{.forced = GetParam()}};
};

TEST_P(Conv2dReluAlgorithm, RunsAndAgreesWithTheReference) {
  for (const ConvCase& c : conv_cases(GetParam())) {
    for (const bool residual : {false, true}) {
      const Operands in = operands(c, residual);
      const std::vector<double> want = reference(c, residual);
      const auto check = [&](const char* call) {
        SCOPED_TRACE(str(describe(c), residual ? ", residual, " : ", ", call));
        const Ran ran;
        const std::vector<double> got = run(in);
        EXPECT_EQ(ran.names(), GetParam());
        EXPECT_LE(relative_error(got, want), 2e-5);
      };
      check("first");
      check("again");
      const ConstantWeights constant;
      check("constant");
      check("kept");
    }
  }
}

// Writing a weight against the promise has no effect: calls read what was derived from the weight before.
TEST_P(Conv2dReluAlgorithm, DerivesFromConstantWeightsOnce) {
  for (const ConvCase& c : conv_cases(GetParam())) {
    SCOPED_TRACE(describe(c));
    const Operands in = operands(c, false);
    std::vector<double> first;
    {
      const ConstantWeights constant;
      first = run(in);
      in.weight.value().fill(0);
      EXPECT_EQ(run(in), first);
    }
    EXPECT_NE(run(in), first) << "the promise has ended";
    const ConstantWeights another;
    EXPECT_NE(run(in), first) << "and what was kept with it";
  }
}

INSTANTIATE_TEST_SUITE_P(Cpu, Conv2dReluAlgorithm,
                         ::testing::Values("nhwc", "blocked", "winograd", "winograd_nhwc", "gemm", "patches", "depthwise"),
                         [](const auto& test) { return test.param; });

TEST(Conv2dBf16, ConstantWeightsAreKeptRounded) {
  const NoGrad no_grad;
  const ConvCase c{{2, 16, 16, 33}, {31, 3, 3, 33}, {.padding = {1, 1}}, true};
  Operands in = operands(c, false);
  in.x = Var(in.x.value().to(DType::bf16));
  const std::vector<double> want = run(in);
  const ConstantWeights constant;
  EXPECT_EQ(run(in), want);
  EXPECT_EQ(run(in), want);  // from the kept copy
  in.weight.value().fill(0);
  EXPECT_EQ(run(in), want) << "a weight that was promised to stay is read once";
}

TEST(Conv2dRelu, IsThreeOpsWhileOperationsAreRecorded) {
  const ConvCase c{{2, 6, 5, 3}, {4, 3, 3, 3}, {.padding = {1, 1}}, true};
  const auto all_of = [&](const auto& op) {
    const std::vector<Var> leaves{Var(random_values(c.x, 0), true), Var(random_values(c.weight, 1), true),
                                  Var(random_values({4}, 2), true), Var(random_values({2, 6, 5, 4}, 3), true)};
    const Var y = op(leaves);
    backward(y, random_values(y.shape(), 4));
    std::vector<std::vector<float>> all{y.value().to_vector<float>()};
    for (const Var& leaf : leaves) all.push_back(leaf.grad().to_vector<float>());
    return all;
  };
  EXPECT_EQ(all_of([&](const auto& v) { return conv2d_relu(v[0], v[1], v[2], v[3], c.options); }),
            all_of([&](const auto& v) { return relu(add(conv2d(v[0], v[1], v[2], c.options), v[3])); }));
}

TEST(Conv2dRelu, RefusesAResidualOfAnotherShape) {
  const auto call = [] {
    const auto var = [](const Shape& shape, std::uint64_t index) { return Var(random_values(shape, index)); };
    conv2d_relu(var({1, 5, 5, 2}, 0), var({4, 3, 3, 2}, 1), {}, var({1, 3, 3, 1}, 2));
  };
  EXPECT_EQ(message_of<ShapeError>(call),
            "conv2d_relu: residual does not fit: it is [1, 3, 3, 1], the convolution gives [1, 3, 3, 4]; "
            "the shapes must be equal");
}

}  // namespace
}  // namespace tessera::testing
