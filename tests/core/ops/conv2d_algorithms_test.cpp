// Forces every algorithm that a clock may choose for a convolution in turn: it takes the passes that it should, and agrees with
// the f64 loops.
#include <gtest/gtest.h>
#include <omp.h>

#include <algorithm>
#include <map>

#include "core/autograd/backward.h"
#include "core/cpu/onednn.h"
#include "core/cpu/onednn_version.h"
#include "core/device/decisions.h"
#include "tests/core/ops/conv2d_cases.h"
#include "tests/support/message_of.h"
#include "tests/support/relative_error.h"

namespace tessera::testing {
namespace {

using Pass = cpu::Conv2dPass;
using Algorithms = std::map<Pass, std::string>;  // the algorithm that took each pass

struct Operands {
  Tensor x, weight, bias, grad_y;
  Conv2dOptions options;
};

// y and the gradients of x, weight and bias.
struct Outcome {
  std::vector<std::vector<double>> values;
  Algorithms took;
};

std::vector<double> in_f64(const Tensor& x) { return x.to(DType::f64).to_vector<double>(); }

// Runs one backward pass at a time, so that the counters tell which algorithm took it.
Outcome run(const Operands& in) {
  Outcome outcome;
  for (const Pass pass : {Pass::backward_input, Pass::backward_weight}) {
    const bool of_x = pass == Pass::backward_input;
    const Var x(in.x, of_x);
    const Var weight(in.weight, !of_x);
    const Var bias = in.bias.defined() ? Var(in.bias, !of_x) : Var();
    const Ran forward;
    const Var y = conv2d(x, weight, bias, in.options);
    outcome.took[Pass::forward] = forward.names();
    const Ran back;
    backward(y, in.grad_y);
    outcome.took[pass] = back.names();
    if (of_x) outcome.values = {in_f64(y.value()), in_f64(x.grad())};
    if (!of_x) outcome.values.push_back(in_f64(weight.grad()));
    if (!of_x && bias.defined()) outcome.values.push_back(in_f64(bias.grad()));
  }
  return outcome;
}

// Images in one dtype, parameters in the other. All values are exact in `rounded`.
Operands operands(const ConvCase& c, DType images, DType parameters, DType rounded) {
  const auto make = [&](const Shape& shape, std::uint64_t index, DType dtype) {
    return off_alignment(random_values(shape, index).to(rounded).to(dtype));
  };
  return {make(c.x, 0, images), make(c.weight, 1, parameters), c.bias ? make({c.weight[0]}, 2, parameters) : Tensor(),
          make(conv2d_output_shape(c.x, c.weight, c.options), 3, images), c.options};
}

Operands single(const ConvCase& c) { return operands(c, DType::f32, DType::f32, DType::f32); }
Operands half(const ConvCase& c) { return operands(c, DType::bf16, DType::f32, DType::bf16); }
Operands exact(const ConvCase& c, DType rounded) { return operands(c, DType::f64, DType::f64, rounded); }

class Conv2dAlgorithm : public ::testing::TestWithParam<std::string> {};

TEST_P(Conv2dAlgorithm, TakesEveryPassAndAgreesWithTheReference) {
  if (GetParam() == "winograd" && !onednn_has_winograd()) GTEST_SKIP() << "oneDNN's Winograd needs AVX-512";
  const Algorithms all{{Pass::forward, GetParam()}, {Pass::backward_input, GetParam()}, {Pass::backward_weight, GetParam()}};
  const DecisionScope scope({.forced = GetParam()});
  for (const ConvCase& c : conv_cases(GetParam())) {
    SCOPED_TRACE(describe(c));
    const Outcome got = run(single(c));
    EXPECT_EQ(got.took, all);
    const Outcome want = run(exact(c, DType::f32));
    ASSERT_EQ(got.values.size(), want.values.size());
    for (std::size_t i = 0; i < want.values.size(); ++i) {
      // Winograd's transforms lose about a digit compared with direct sums (Lavin & Gray 2016, section 5.3).
      EXPECT_LE(relative_error(got.values[i], want.values[i]), 2e-5) << "result " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cpu, Conv2dAlgorithm,
                         ::testing::Values("nhwc", "blocked", "winograd", "winograd_nhwc", "gemm", "patches", "depthwise"),
                         [](const auto& test) { return test.param; });

// The algorithm that takes a bf16 pass while `forced` is forced: `forced` if it is offered, otherwise the first that is offered.
// The weight gradient is split among threads if at least two of them get images. If all parts are equal, the only alternatives to
// the split are a product and our Winograd.
std::string expected_bf16(const std::string& forced, Pass pass, const ConvCase& c) {
  const std::int64_t threads = omp_get_max_threads();
  const bool splits = pass == Pass::backward_weight && std::min(threads, c.x[0]) > 1;
  const bool evenly = splits && c.x[0] % threads == 0;
  if (forced == "gemm" || forced == "winograd_nhwc" || (forced == "split" ? splits : !evenly)) return forced;
  const bool pointwise = c.weight[1] * c.weight[2] == 1;
  return pointwise ? "gemm" : splits ? "split" : "nhwc";
}

class Conv2dBf16Algorithm : public ::testing::TestWithParam<std::string> {};

TEST_P(Conv2dBf16Algorithm, AgreesWithTheReference) {
  const DecisionScope scope({.forced = GetParam()});
  for (const ConvCase& c : conv_cases(GetParam())) {
    const Outcome got = run(half(c));
    const Outcome want = run(exact(c, DType::bf16));
    ASSERT_EQ(got.values.size(), want.values.size());
    for (std::size_t i = 0; i < want.values.size(); ++i) {
      // Sums run in f32. y and the gradient of x are rounded once, by at most 2^-8; gradients of parameters are not rounded.
      EXPECT_LE(relative_error(got.values[i], want.values[i]), i < 2 ? 0x1p-8 + 2e-5 : 2e-5) << describe(c) << ", result " << i;
    }
  }
}

TEST_P(Conv2dBf16Algorithm, TakesThePassesThatItIsOffered) {
  if (!cpu::onednn_has_bf16()) GTEST_SKIP() << "neither avx512_bf16 nor AMX";
  const DecisionScope scope({.forced = GetParam()});
  std::map<Pass, int> shapes;
  for (const ConvCase& c : conv_cases(GetParam())) {
    SCOPED_TRACE(describe(c));
    for (const auto& [pass, algorithm] : run(half(c)).took) {
      EXPECT_EQ(algorithm, expected_bf16(GetParam(), pass, c)) << "pass " << static_cast<int>(pass);
      if (algorithm == GetParam()) ++shapes[pass];
    }
  }
  const bool all_passes = GetParam() != "split";
  EXPECT_EQ(shapes[Pass::backward_weight] >= 6, all_passes || omp_get_max_threads() > 1);
  for (const Pass pass : {Pass::forward, Pass::backward_input}) EXPECT_EQ(shapes[pass] >= 6, all_passes);
}

INSTANTIATE_TEST_SUITE_P(Cpu, Conv2dBf16Algorithm, ::testing::Values("nhwc", "blocked", "split", "gemm", "winograd_nhwc"),
                         [](const auto& test) { return test.param; });

// Training keeps weights in f32. A product sees them rounded to nearest: 1 + 2^-9 becomes 1, as the next value is 1 + 2^-7.
TEST(Conv2dBf16, WeightsAreRoundedForTheProduct) {
  if (!cpu::onednn_has_bf16()) GTEST_SKIP() << "neither avx512_bf16 nor AMX: the product runs in f32";
  for (const Shape& taps : {Shape{1, 1, 2, 1}, Shape{1, 1, 1, 2}}) {
    const Var x(Tensor::full({1, 1, taps[2], taps[3]}, 1.0, DType::bf16));
    const Var weight(Tensor::from<float>({1 + 0x1p-9f, -1}, taps));
    EXPECT_EQ(conv2d(x, weight).value().item(), 0.0) << taps;
  }
}

TEST(Conv2dBf16, TakesF32ParametersOnly) {
  const Var x(Tensor::full({1, 3, 3, 1}, 1.0, DType::bf16));
  const Var rounded(Tensor::full({1, 3, 3, 1}, 1.0, DType::bf16));
  EXPECT_EQ(message_of<DTypeError>([&] { conv2d(x, rounded); }),
            "conv2d: dtypes differ: x is bf16 [1, 3, 3, 1] on cpu, weight is bf16 [1, 3, 3, 1] on cpu; weight must be f32");
}

TEST(Conv2dDecision, IsRecordedOnceAndReplayedWithoutAClock) {
  const Operands in = single(conv_cases("winograd").front());
  std::vector<std::string> recorded;
  DecisionMap taken;
  {
    const DecisionScope scope(
        {.measure = true, .on_measured = [&](const std::string& key, const std::string&) { recorded.push_back(key); }});
    run(in);
    run(in);
    taken = scope.taken();
  }
  EXPECT_EQ(recorded.size(), 3u);
  ASSERT_EQ(taken.size(), 3u);
  EXPECT_EQ(taken.begin()->first.substr(0, 52), "conv2d.backward_input n3 h13 w11 c32>32 k3x3 s1x1 p1");
  // Replaces each measured choice by another one, so that obeying the record shows. The keys are ordered: backward_input,
  // backward_weight, forward.
  for (auto& [key, choice] : taken) choice = choice == "nhwc" ? "blocked" : "nhwc";
  const std::vector<std::string> choices{taken.begin()->second, std::next(taken.begin())->second, taken.rbegin()->second};
  const Algorithms obeyed{{Pass::backward_input, choices[0]}, {Pass::backward_weight, choices[1]}, {Pass::forward, choices[2]}};
  const DecisionScope replay({.measure = true, .known = taken, .on_measured = [](const std::string& key, const std::string&) {
                                ADD_FAILURE() << "measured " << key;
                              }});
  const Outcome first = run(in);
  EXPECT_EQ(first.took, obeyed);
  EXPECT_EQ(run(in).values, first.values);
}

TEST(Conv2dDecision, AnInnerScopeLeavesThePlansOfTheOuterOne) {
  const Operands in = single(conv_cases("winograd").front());
  const DecisionScope outer({.forced = "blocked"});
  const Outcome before = run(in);
  {
    const DecisionScope inner({.forced = "nhwc"});
    EXPECT_NE(run(in).took, before.took);
  }
  const std::size_t built = cpu::onednn::primitives_built();
  const Outcome after = run(in);
  EXPECT_EQ(cpu::onednn::primitives_built(), built);
  EXPECT_EQ(after.took, before.took);
  EXPECT_EQ(after.values, before.values);
}

}  // namespace
}  // namespace tessera::testing
