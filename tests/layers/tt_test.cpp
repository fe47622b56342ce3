#include <gtest/gtest.h>

#include <limits>

#include "core/autograd/backward.h"
#include "core/config/read.h"
#include "core/device/constant_weights.h"
#include "core/linalg/relative_error.h"
#include "core/ops/conv2d.h"
#include "core/ops/linear.h"
#include "core/support/error.h"
#include "layers/batch_norm.h"
#include "layers/fold.h"
#include "layers/sequential.h"
#include "layers/tt_conv2d.h"
#include "layers/tt_linear.h"
#include "tests/core/linalg/linalg_support.h"
#include "tests/layers/core_gradients.h"
#include "tests/support/message_of.h"

namespace tessera::testing {
namespace {

double variance(const Tensor& weight) {
  double sum = 0;
  for (const double w : values(weight)) sum += w * w;
  return sum / static_cast<double>(weight.numel());
}

const std::vector<TtConv2dConfig> kConvolutions{
    {.conv = {.in = 6, .out = 4, .padding = {1, 1}}, .ranks = {2, 3, 4, 2}},
    {.conv = {.in = 8, .out = 12, .kernel = {3, 2}, .stride = {2, 1}, .padding = {0, 1}, .dilation = {1, 2}, .bias = false},
     .out_modes = {2, 3, 2},
     .in_modes = {4, 2},
     .ranks = {2, 5, 4, 4, 2}},
    {.conv = {.in = 4, .out = 9}, .out_modes = {1, 9}, .in_modes = {2, 2}, .ranks = {1, 1, 1, 1}}};

const std::vector<TtLinearConfig> kLinear{
    {.in = 12, .out = 10, .ranks = {3}},
    {.in = 16, .out = 24, .out_modes = {2, 3, 4}, .in_modes = {4, 2, 2}, .ranks = {5, 3}, .bias = false},
    {.in = 6, .out = 4, .out_modes = {2, 1, 2, 1}, .in_modes = {1, 3, 1, 2}, .ranks = {1, 2, 1}}};

TEST(TtConv2d, ComputesWhatItsComposedWeightDoes) {
  for (const TtConv2dConfig& config : kConvolutions) {
    SCOPED_TRACE(to_json(TtConv2d(config).config()));
    TtConv2d layer(config);
    layer.reset_parameters(1);
    const Tensor x = random_tensor({2, 7, 5, config.conv.in}, DType::f32, 2);
    const Var x1(x, true), x2(x, true), weight(layer.dense_weight(), true);
    const Var y = layer.forward(x1, {});
    const Conv2dOptions options{.stride = config.conv.stride, .padding = config.conv.padding, .dilation = config.conv.dilation};
    const Var expected = conv2d(x2, weight, config.conv.bias ? layer.parameter("bias").var() : Var(), options);
    EXPECT_EQ(y.shape(), layer.output_shape(x.shape()));
    EXPECT_LT(linalg::relative_error(y.value(), expected.value()), 1e-5);
    EXPECT_LT(linalg::relative_error(layer.to_dense()->forward(x1, {}).value(), expected.value()), 1e-5);
    const Tensor grad_y = random_tensor(y.shape(), DType::f32, 3);
    backward(y, grad_y);
    backward(expected, grad_y);
    EXPECT_LT(linalg::relative_error(x1.grad(), x2.grad()), 1e-5);
    expect_core_gradients(layer, weight.grad());
  }
}

TEST(TtLinear, ComputesWhatItsComposedWeightDoes) {
  for (const TtLinearConfig& config : kLinear) {
    SCOPED_TRACE(to_json(TtLinear(config).config()));
    TtLinear layer(config);
    layer.reset_parameters(1);
    for (const Shape& shape : {Shape{5, config.in}, Shape{2, 3, config.in}, Shape{1, config.in}}) {
      for (const auto& parameter : layer.parameters()) parameter->zero_grad();
      const Tensor x = random_tensor(shape, DType::f32, 2);
      const Var x1(x, true), x2(x, true), weight(layer.dense_weight(), true);
      const Var y = layer.forward(x1, {});
      const Var expected = linear(x2, weight, config.bias ? layer.parameter("bias").var() : Var());
      EXPECT_EQ(y.shape(), layer.output_shape(shape));
      EXPECT_LT(linalg::relative_error(y.value(), expected.value()), 1e-5);
      const Tensor grad_y = random_tensor(y.shape(), DType::f32, 3);
      backward(y, grad_y);
      backward(expected, grad_y);
      EXPECT_LT(linalg::relative_error(x1.grad(), x2.grad()), 1e-5);
      expect_core_gradients(layer, weight.grad());
    }
  }
}

TEST(TtConv2d, FreshWeightsHaveTheVarianceOfADenseLayer) {
  // Few large modes, so that a composed element sums many independent products.
  TtConv2d layer({.conv = {.in = 64, .out = 64}, .ranks = {8, 32, 32, 8}});
  double sum = 0;
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    layer.reset_parameters(seed);
    sum += variance(layer.dense_weight()) / 8;
  }
  EXPECT_NEAR(sum, 2.0 / (64 * 9), 0.15 * 2.0 / (64 * 9));
}

TEST(TtLinear, FreshWeightsHaveTheVarianceOfADenseLayer) {
  TtLinear layer({.in = 256, .out = 64, .ranks = {32}});
  double sum = 0;
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    layer.reset_parameters(seed);
    sum += variance(layer.dense_weight()) / 8;
  }
  EXPECT_NEAR(sum, 1.0 / (3 * 256), 0.1 / (3 * 256));
}

TEST(TtConv2d, BatchNormFoldsIntoIt) {
  Sequential network;
  TtConv2dConfig config = kConvolutions[0];
  config.conv.bias = false;
  network.add_child("conv", std::make_unique<TtConv2d>(config));
  network.add_child("bn", std::make_unique<BatchNorm>(BatchNormConfig{.channels = 4}));
  initialize(network, 4);
  network.child("bn").buffers().at(0)->value.copy_from(random_tensor({4}, DType::f32, 5));
  const Var x(random_tensor({2, 5, 4, 6}, DType::f32, 6));
  const std::unique_ptr<Module> copy = for_inference(network);
  EXPECT_EQ(copy->child("bn").kind(), "identity");
  EXPECT_EQ(copy->child("conv").kind(), "tucker2_conv2d");
  EXPECT_LT(largest_difference(copy->forward(x, {}).value(), network.forward(x, {}).value()), 1e-5);
}

TEST(TtConv2d, CountsTheMacsOfItsThreeConvolutions) {
  const TtConv2d layer({.conv = {.in = 6, .out = 4, .stride = {2, 2}, .padding = {1, 1}}, .ranks = {2, 3, 4, 2}});
  Trace trace;
  layer.output_shape({1, 7, 5, 6}, &trace);
  EXPECT_EQ(trace.at(0).macs, 35 * 4 * 6 + 12 * (3 * 9 * 4 + 4 * 3));
  EXPECT_EQ(trace.at(0).parameters, 2 * 2 + 2 * 2 * 3 + 3 * 9 * 4 + 4 * 2 * 2 + 2 * 3 + 4);
}

TEST(TtLinear, PartsWhereTheHalvesAreCheapest) {
  const TtHalves halves = tt_halves({4, 8, 8, 4}, {4, 8, 8, 4}, std::vector<std::int64_t>{4, 4, 4});
  EXPECT_EQ(halves.left, 2u);
  EXPECT_EQ(halves.macs, 2 * 32 * 4 * 32 * 32);
  const TtLinear layer({.in = 1024, .out = 1024, .out_modes = {4, 8, 8, 4}, .in_modes = {4, 8, 8, 4}, .ranks = {4, 4, 4}});
  Trace trace;
  layer.output_shape({1, 3, 1024}, &trace);
  EXPECT_EQ(trace.at(0).macs, 3 * halves.macs);
  EXPECT_EQ(4 * halves.macs, 1024 * 1024);
}

// Cores of 2^20 elements may represent a matrix for which other halves cost more MACs than an integer counts.
TEST(TtLinear, HalvesThatCannotBeCountedAreNotTheCheapest) {
  constexpr std::int64_t kSize = 1 << 20;
  const TtHalves halves = tt_halves({1, kSize, 1, kSize}, {kSize, 1, kSize, 1}, std::vector<std::int64_t>{1, 1, 1});
  EXPECT_EQ(halves.left, 2u);
  EXPECT_EQ(halves.macs, std::int64_t{1} << 61);
}

// Kernels keep what they derive from a weight by its address, so the multiplied cores must be the same tensor each time.
TEST(Tt, ConstantWeightsAreMultipliedOnce) {
  const auto user = std::make_shared<int>();
  const Tensor core = random_tensor({1, 2, 3}, DType::f32);
  int made = 0;
  const auto make = [&] {
    ++made;
    return Var(core.clone());
  };
  const NoGrad no_grad;
  made_once(user, core, make);
  made_once(user, core, make);
  EXPECT_EQ(made, 2);
  const ConstantWeights constant;
  const Tensor first = made_once(user, core, make).value();
  EXPECT_TRUE(made_once(user, core, make).value().shares_storage(first));
  EXPECT_EQ(made, 3);
}

TEST(Tt, ForwardUnderConstantWeightsIsTheSame) {
  const NoGrad no_grad;
  TtConv2d conv(kConvolutions[0]);
  TtLinear linear(kLinear[1]);
  conv.reset_parameters(1);
  linear.reset_parameters(1);
  const Var image(random_tensor({2, 7, 5, 6}, DType::f32, 2)), rows(random_tensor({3, 16}, DType::f32, 2));
  const Tensor conv_y = conv.forward(image, {}).value(), linear_y = linear.forward(rows, {}).value();
  const ConstantWeights constant;
  for (int i = 0; i < 2; ++i) {
    EXPECT_LT(linalg::relative_error(conv.forward(image, {}).value(), conv_y), 1e-6);
    EXPECT_LT(linalg::relative_error(linear.forward(rows, {}).value(), linear_y), 1e-6);
  }
}

TEST(TtModes, AreAsEqualAsDivisorsAllow) {
  EXPECT_EQ(balanced_modes(64, 3), (Modes{4, 4, 4}));
  EXPECT_EQ(balanced_modes(128, 3), (Modes{4, 4, 8}));
  EXPECT_EQ(balanced_modes(12, 2), (Modes{3, 4}));
  EXPECT_EQ(balanced_modes(7, 2), (Modes{1, 7}));
  EXPECT_EQ(balanced_modes(1, 2), (Modes{1, 1}));
  constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(balanced_modes(kLargest, 3), (Modes{1, 1, kLargest}));
}

TEST(TtModes, RanksAreJudgedTogetherAndLoweredToLegalOnes) {
  const Modes modes{4, 3, 9, 5};
  EXPECT_EQ(largest_tt_ranks(modes), (std::vector<std::int64_t>{4, 12, 5}));
  EXPECT_TRUE(tt_rank_problems(modes, tt_ranks(largest_tt_ranks(modes))).empty());
  const std::vector<RankProblem> problems = tt_rank_problems(modes, tt_ranks(Modes{2, 7, 5}));
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].rank, "r2");
  EXPECT_EQ(problems[0].message, "r2 is 7 between modes of 3 and 9; beside its neighbours legal range is 1..6");
  EXPECT_EQ(tt_rank_problems(modes, tt_ranks(Modes{2, 2})).front().message, "names 2 ranks, the modes 4·3·9·5 have 3");
  for (const Modes& asked : {Modes{2, 7, 5}, Modes{4, 12, 1}, Modes{1, 12, 5}, Modes{4, 1, 5}}) {
    EXPECT_TRUE(tt_rank_problems(modes, legal_tt_ranks(modes, tt_ranks(asked))).empty());
  }
}

TEST(Tt, ConfigsRefuseModesAndRanksThatCannotBe) {
  const auto conv = [](const char* json) {
    return message_of<ConfigError>([&] { read<TtConv2dConfig>(parse_json(json, "test")); });
  };
  EXPECT_EQ(conv(R"({"in": 4, "out": 8, "ranks": [2, 2, 2, 2], "out_modes": [8]})"),
            "test: out_modes: needs two modes at least; with one on each side it is tucker2");
  EXPECT_EQ(conv(R"({"in": 4, "out": 8, "ranks": [2, 2, 2, 2], "in_modes": [2, 3]})"),
            "test: in_modes: 2·3 is 6, the layer has 4 channels");
  EXPECT_EQ(conv(R"({"in": 4, "out": 8, "ranks": [3, 2, 2, 2]})"),
            "test: ranks: r1 is 3 between modes of 2 and 4; beside its neighbours legal range is 1..2");
  EXPECT_EQ(conv(R"({"in": 4, "out": 8, "groups": 2, "ranks": [2, 2, 2, 2]})"),
            "test: groups: unknown key; known: in out kernel stride padding dilation out_modes in_modes ranks bias");
  EXPECT_EQ(conv(R"({"in": 4, "out": 16, "ranks": [2], "out_modes": [2, 2, 2, 2]})"),
            "test: out_modes: has 4 modes; tt holds 3 on a side at most");
  const auto linear = [](const char* json) {
    return message_of<ConfigError>([&] { read<TtLinearConfig>(parse_json(json, "test")); });
  };
  EXPECT_EQ(linear(R"({"in": 4, "out": 8, "ranks": [2, 2], "out_modes": [2, 2, 2]})"),
            "test: out has 3 modes, in has 2; tt needs as many of each");
  EXPECT_EQ(linear(R"({"in": 32, "out": 32, "ranks": [2], "out_modes": [2, 2, 2, 2, 2], "in_modes": [2, 2, 2, 2, 2]})"),
            "test: tt holds 4 modes at most");
  EXPECT_EQ(linear(R"({"in": 4, "out": 8, "ranks": [2], "out_modes": [2, 3]})"), "test: out_modes 2·3 is 6, out is 8");
  EXPECT_EQ(linear(R"({"in": 4, "out": 8, "ranks": [2, 3]})"), "test: ranks: names 2 ranks, the modes 4·8 have 1");
  EXPECT_EQ(message_of<ConfigError>([] { TtLinear({.in = 4, .out = 8, .ranks = {9}}); }),
            "tt_linear: r1 is 9 between modes of 4 and 8; beside its neighbours legal range is 1..4");
}

}  // namespace
}  // namespace tessera::testing
