// Every algorithm that a clock may choose for a convolution, forced in turn: it runs, and agrees with the f64 loops.
#include <gtest/gtest.h>

#include "core/autograd/backward.h"
#include "core/constant_weights.h"
#include "core/cpu/onednn_version.h"
#include "core/decisions.h"
#include "core/ops/arithmetic.h"
#include "core/ops/conv2d.h"
#include "core/ops/conv2d_plan_cpu.h"
#include "core/ops/relu.h"
#include "core/rng.h"
#include "tests/support/message_of.h"
#include "tests/support/relative_error.h"

namespace tessera {
namespace {

struct Case {
  Shape x, weight;
  Conv2dOptions options = {};
  bool bias = false;
};

// All above the size from which algorithms are chosen; odd sizes, channels that fill no block, several images.
std::vector<Case> cases(const std::string& algorithm) {
  const Extent one{1, 1};
  const std::vector<Case> pointwise{
      {{3, 13, 11, 64}, {96, 1, 1, 64}},  {{2, 19, 23, 48}, {64, 1, 1, 48}, {}, true},
      {{1, 31, 29, 33}, {67, 1, 1, 33}},  {{7, 9, 10, 128}, {31, 1, 1, 128}},
      {{1, 1, 1009, 64}, {32, 1, 1, 64}}, {{5, 16, 16, 31}, {64, 1, 1, 31}, {}, true},
  };
  if (algorithm == "gemm") return pointwise;
  std::vector<Case> all{
      {{3, 13, 11, 32}, {32, 3, 3, 32}, {.padding = one}},
      {{2, 9, 10, 64}, {64, 3, 3, 64}, {.padding = one}, true},
      {{1, 17, 15, 48}, {32, 3, 3, 48}, {.padding = one}},
      {{5, 8, 8, 64}, {32, 3, 3, 64}, {.padding = one}, true},
      {{2, 16, 16, 33}, {31, 3, 3, 33}, {.padding = one}, true},
      {{1, 14, 14, 128}, {128, 3, 3, 128}, {.padding = one}},
      {{2, 15, 15, 32}, {32, 3, 3, 32}},
  };
  if (algorithm == "winograd") return all;
  if (algorithm == "winograd_nhwc") {
    all.push_back({{3, 21, 18, 16}, {16, 3, 3, 16}, {.padding = {2, 0}}, true});
    all.push_back({{2, 23, 26, 3}, {50, 3, 3, 3}, {.padding = {0, 2}}});
    return all;
  }
  all.insert(all.end(), pointwise.begin(), pointwise.end());
  all.push_back({{2, 17, 19, 32}, {48, 3, 3, 32}, {.stride = {2, 2}, .padding = one}});
  all.push_back({{2, 16, 16, 32}, {32, 5, 3, 16}, {.padding = {2, 1}, .groups = 2}, true});
  all.push_back({{1, 19, 19, 32}, {32, 3, 3, 32}, {.padding = {2, 2}, .dilation = {2, 2}}});
  return all;
}

Tensor random(const Shape& shape, std::uint64_t index) {
  const Tensor x = Tensor::empty(shape);
  fill_uniform(x, RngStream(7, "conv2d_algorithms_test", "values"), -1, 1, index);
  return x;
}

// y and the gradients of x, weight and bias.
std::vector<std::vector<double>> run(const Case& c, DType dtype) {
  std::vector<Var> leaves{Var(random(c.x, 0).to(dtype), true), Var(random(c.weight, 1).to(dtype), true)};
  if (c.bias) leaves.emplace_back(random({c.weight[0]}, 2).to(dtype), true);
  const Var y = conv2d(leaves[0], leaves[1], c.bias ? leaves[2] : Var(), c.options);
  backward(y, random(y.shape(), 3).to(dtype));
  std::vector<std::vector<double>> all{y.value().to(DType::f64).to_vector<double>()};
  for (const Var& leaf : leaves) all.push_back(leaf.grad().to(DType::f64).to_vector<double>());
  return all;
}

class Conv2dAlgorithm : public testing::TestWithParam<std::string> {};

TEST_P(Conv2dAlgorithm, AgreesWithTheReferenceAndRuns) {
  if (GetParam() == "winograd" && !__builtin_cpu_supports("avx512bw")) GTEST_SKIP() << "oneDNN's Winograd needs AVX-512";
  const DecisionScope scope({.forced = GetParam()});
  std::size_t taken = 0;
  for (const Case& c : cases(GetParam())) {
    const std::size_t before = cpu::conv2d_runs(GetParam());
    const auto got = run(c, DType::f32);
    taken += cpu::conv2d_runs(GetParam()) - before;
    const auto want = run(c, DType::f64);
    for (std::size_t i = 0; i < want.size(); ++i) {
      // Winograd's transforms lose about a digit against direct sums (Lavin & Gray 2016, section 5.3).
      EXPECT_LE(relative_error(got[i], want[i]), 2e-5) << "x " << c.x << ", weight " << c.weight << ", result " << i;
    }
  }
  EXPECT_GE(taken, 6u * 3u);  // each of at least six shapes in all three passes
}

// The numbers of a bf16 run in f64: images and weights that bf16 holds.
std::vector<std::vector<double>> run_bf16(const Case& c, bool exactly) {
  const auto leaf = [&](const Shape& shape, std::uint64_t index, DType stored) {
    return Var(random(shape, index).to(DType::bf16).to(exactly ? DType::f64 : stored), true);
  };
  std::vector<Var> leaves{leaf(c.x, 0, DType::bf16), leaf(c.weight, 1, DType::f32)};
  if (c.bias) leaves.push_back(leaf({c.weight[0]}, 2, DType::f32));
  const Var y = conv2d(leaves[0], leaves[1], c.bias ? leaves[2] : Var(), c.options);
  backward(y, random(y.shape(), 3).to(DType::bf16).to(y.dtype()));
  std::vector<std::vector<double>> all{y.value().to(DType::f64).to_vector<double>()};
  for (const Var& v : leaves) all.push_back(v.grad().to(DType::f64).to_vector<double>());
  return all;
}

TEST(Conv2dBf16, AlgorithmsAgreeWithTheReferenceAndRun) {
  for (const std::string algorithm : {"nhwc", "blocked", "split", "gemm"}) {
    SCOPED_TRACE(algorithm);
    const DecisionScope scope({.forced = algorithm});
    const std::size_t before = cpu::conv2d_runs(algorithm);
    for (const Case& c : cases(algorithm)) {
      const auto got = run_bf16(c, false);
      const auto want = run_bf16(c, true);
      for (std::size_t i = 0; i < want.size(); ++i) {
        // Sums run in f32; y and the gradient of x are rounded once, by at most 2^-8; those of the parameters are not.
        EXPECT_LE(relative_error(got[i], want[i]), i < 2 ? 0x1p-8 + 2e-5 : 2e-5)
            << "x " << c.x << ", weight " << c.weight << ", result " << i;
      }
    }
    const std::size_t passes = algorithm == "split" ? 1 : 3;  // that takes the weight gradient alone
    const std::size_t least = cpu::onednn_has_bf16() ? 6u * passes : 0u;
    EXPECT_GE(cpu::conv2d_runs(algorithm) - before, least);
  }
}

// The weights of training are f32; a product sees them rounded to nearest.
TEST(Conv2dBf16, WeightsAreRoundedForTheProduct) {
  if (!cpu::onednn_has_bf16()) return;  // then they are not: the product runs in f32
  const Tensor x = Tensor::full({1, 3, 3, 1}, 1.0, DType::bf16);
  const Var weight(Tensor::full({1, 3, 3, 1}, 1.0 + 0x1p-9));  // halfway to the next bf16 would be 1 + 2^-8
  EXPECT_EQ(conv2d(Var(x), weight).value().item(), 9.0);
}

TEST(Conv2dBf16, TakesF32ParametersOnly) {
  const Var x(Tensor::full({1, 3, 3, 1}, 1.0, DType::bf16));
  const Var rounded(Tensor::full({1, 3, 3, 1}, 1.0, DType::bf16));
  EXPECT_EQ(message_of<DTypeError>([&] { conv2d(x, rounded); }),
            "conv2d: dtypes differ: x is bf16 [1, 3, 3, 1] on cpu, weight is bf16 [1, 3, 3, 1] on cpu; weight must be f32");
}

TEST(Conv2dBf16, ConstantWeightsAreKeptRounded) {
  const NoGrad no_grad;
  const Case c{{2, 16, 16, 33}, {31, 3, 3, 33}, {.padding = {1, 1}}, true};
  const Var x(random(c.x, 0).to(DType::bf16));
  const Var weight(random(c.weight, 1));
  const Var bias(random({31}, 2));
  const auto call = [&] { return conv2d_relu(x, weight, bias, Var(), c.options).value().to(DType::f32).to_vector<float>(); };
  const std::vector<float> want = call();
  const ConstantWeights constant;
  EXPECT_EQ(call(), want);
  EXPECT_EQ(call(), want);  // from what was kept
}

// Largest difference to relu(conv2d + residual) in f64, as a share of the largest value.
double error_of_relu(const Case& c, const Var& residual) {
  const std::vector<Var> in{Var(random(c.x, 0)), Var(random(c.weight, 1)), c.bias ? Var(random({c.weight[0]}, 2)) : Var(),
                            residual};
  std::vector<Var> exact;
  for (const Var& v : in) exact.push_back(v.defined() ? Var(v.value().to(DType::f64)) : v);
  const Var y = conv2d(exact[0], exact[1], exact[2], c.options);
  const std::vector<double> want = relu(exact[3].defined() ? add(y, exact[3]) : y).value().to_vector<double>();
  double error = 0;
  for (int call = 0; call < 2; ++call) {  // the second finds weights that were kept
    const auto got = conv2d_relu(in[0], in[1], in[2], in[3], c.options).value().to(DType::f64).to_vector<double>();
    error = std::max(error, relative_error(got, want));
  }
  return error;
}

TEST_P(Conv2dAlgorithm, DoesTheRectifierAndKeepsConstantWeights) {
  if (GetParam() == "winograd" && !__builtin_cpu_supports("avx512bw")) GTEST_SKIP() << "oneDNN's Winograd needs AVX-512";
  const NoGrad no_grad;
  const DecisionScope scope({.forced = GetParam()});
  const std::size_t before = cpu::conv2d_runs(GetParam());
  for (const Case& c : cases(GetParam())) {
    SCOPED_TRACE(str("x ", c.x, ", weight ", c.weight));
    for (const Var& residual : {Var(), Var(random(conv2d_output_shape(c.x, c.weight, c.options), 3))}) {
      EXPECT_LE(error_of_relu(c, residual), 2e-5);
      const ConstantWeights constant;
      EXPECT_LE(error_of_relu(c, residual), 2e-5) << "constant";
    }
  }
  EXPECT_GE(cpu::conv2d_runs(GetParam()) - before, 6u * 8u);  // two calls each, with and without residual and scope
}

TEST(Conv2dRelu, IsThreeOpsWhileOperationsAreRecorded) {
  const Case c{{2, 6, 5, 3}, {4, 3, 3, 3}, {.padding = {1, 1}}, true};
  const auto run = [&](const auto& op) {
    const std::vector<Var> leaves{Var(random(c.x, 0), true), Var(random(c.weight, 1), true), Var(random({4}, 2), true),
                                  Var(random({2, 6, 5, 4}, 3), true)};
    const Var y = op(leaves);
    backward(y, random(y.shape(), 4));
    std::vector<std::vector<float>> all{y.value().to_vector<float>()};
    for (const Var& leaf : leaves) all.push_back(leaf.grad().to_vector<float>());
    return all;
  };
  EXPECT_EQ(run([&](const auto& v) { return conv2d_relu(v[0], v[1], v[2], v[3], c.options); }),
            run([&](const auto& v) { return relu(add(conv2d(v[0], v[1], v[2], c.options), v[3])); }));
}

TEST(Conv2dRelu, RefusesAResidualOfAnotherShape) {
  const auto call = [] {
    conv2d_relu(Var(random({1, 5, 5, 2}, 0)), Var(random({4, 3, 3, 2}, 1)), {}, Var(random({1, 3, 3, 1}, 2)));
  };
  EXPECT_EQ(message_of<ShapeError>(call),
            "conv2d_relu: residual does not fit: it is [1, 3, 3, 1], the convolution gives [1, 3, 3, 4]; "
            "the shapes must be equal");
}

INSTANTIATE_TEST_SUITE_P(Cpu, Conv2dAlgorithm, testing::Values("nhwc", "blocked", "winograd", "winograd_nhwc", "gemm"),
                         [](const auto& test) { return test.param; });

TEST(Conv2dDecision, IsRecordedOnceAndReplayedWithoutAClock) {
  const Case c = cases("winograd").front();
  std::vector<std::string> recorded;
  DecisionMap taken;
  std::vector<std::vector<double>> first;
  {
    const DecisionScope scope(
        {.measure = true, .on_measured = [&](const std::string& key, const std::string&) { recorded.push_back(key); }});
    first = run(c, DType::f32);
    run(c, DType::f32);
    taken = scope.taken();
  }
  EXPECT_EQ(recorded.size(), 3u);
  ASSERT_EQ(taken.size(), 3u);
  EXPECT_EQ(taken.begin()->first.substr(0, 52), "conv2d.backward_input n3 h13 w11 c32>32 k3x3 s1x1 p1");
  // Another choice than each measured one: what is obeyed is the record.
  for (auto& [key, choice] : taken) choice = choice == "nhwc" ? "blocked" : "nhwc";
  const std::size_t nhwc = cpu::conv2d_runs("nhwc");
  const std::size_t blocked = cpu::conv2d_runs("blocked");
  const DecisionScope replay({.measure = true, .known = taken, .on_measured = [](const std::string& key, const std::string&) {
                                ADD_FAILURE() << "measured " << key;
                              }});
  run(c, DType::f32);
  EXPECT_EQ(cpu::conv2d_runs("nhwc") + cpu::conv2d_runs("blocked") - nhwc - blocked, 3u);
  EXPECT_EQ(run(c, DType::f32), run(c, DType::f32));
}

}  // namespace
}  // namespace tessera
