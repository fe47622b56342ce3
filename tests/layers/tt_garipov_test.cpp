#include <gtest/gtest.h>

#include "core/autograd/backward.h"
#include "core/config/read.h"
#include "core/device/constant_weights.h"
#include "core/linalg/relative_error.h"
#include "core/ops/conv2d.h"
#include "core/ops/relu.h"
#include "core/support/error.h"
#include "layers/batch_norm.h"
#include "layers/fold.h"
#include "layers/sequential.h"
#include "layers/tt_garipov_conv2d.h"
#include "tests/core/linalg/linalg_support.h"
#include "tests/support/gradient_check.h"
#include "tests/support/message_of.h"

namespace tessera::testing {
namespace {

const std::vector<TtGaripovConv2dConfig> kConvolutions{
    {.conv = {.in = 6, .out = 4, .padding = {1, 1}}, .ranks = {3, 4}},
    {.conv = {.in = 8, .out = 12, .kernel = {3, 2}, .stride = {2, 1}, .padding = {0, 1}, .dilation = {1, 2}, .bias = false},
     .out_modes = {2, 3, 2},
     .in_modes = {2, 1, 4},
     .ranks = {5, 4, 2}},
    {.conv = {.in = 36, .out = 16, .kernel = {1, 3}, .stride = {2, 2}},
     .out_modes = {2, 2, 2, 2},
     .in_modes = {3, 2, 3, 2},
     .ranks = {3, 7, 5, 4}},
    {.conv = {.in = 5, .out = 7}, .out_modes = {1, 7}, .in_modes = {5, 1}},  // rank 1
    {.conv = {.in = 4, .out = 4}, .ranks = {12, 3}},  // rank 12 exceeds the nine rows of the taps
    {.conv = {.in = 4, .out = 4}, .ranks = {4, 5}}};  // rank 5 exceeds the last pair's four

Conv2dOptions options_of(const Conv2dConfig& conv) {
  return {.stride = conv.stride, .padding = conv.padding, .dilation = conv.dilation};
}

Var bias_of(const Module& layer, const Conv2dConfig& conv) { return conv.bias ? layer.parameter("bias").var() : Var(); }

// The convolution from its inputs: x, the bias if there is one, and the cores.
Var by_cores(std::span<const Var> inputs, const TtGaripovConv2dConfig& whole) {
  const Conv2dConfig& conv = whole.conv;
  const Var weight = garipov_weight(inputs.subspan(conv.bias ? 2 : 1), conv.kernel, whole.out_modes, whole.in_modes);
  return conv2d(inputs[0], weight, conv.bias ? inputs[1] : Var(), options_of(conv));
}

// The config with its defaults filled in.
TtGaripovConv2dConfig whole_of(const TtGaripovConv2d& layer) { return read<TtGaripovConv2dConfig>(layer.config()); }

TEST(TtGaripovConv2d, ItsWeightIsTheTrainOverTheKernelAndPairsOfChannels) {
  TtGaripovConv2d layer(
      {.conv = {.in = 6, .out = 8, .kernel = {3, 2}}, .out_modes = {2, 4}, .in_modes = {3, 2}, .ranks = {5, 4}});
  layer.reset_parameters(1);
  const std::vector<double> taps = values(layer.parameter("core1").value()), first = values(layer.parameter("core2").value());
  const std::vector<double> second = values(layer.parameter("core3").value()), weight = values(layer.dense_weight());
  for (std::size_t o = 0; o < 8; ++o) {
    for (std::size_t tap = 0; tap < 6; ++tap) {
      for (std::size_t i = 0; i < 6; ++i) {
        double sum = 0;
        for (std::size_t r1 = 0; r1 < 5; ++r1) {
          for (std::size_t r2 = 0; r2 < 4; ++r2) {
            sum += taps[tap * 5 + r1] * first[(r1 * 6 + o / 4 * 3 + i / 2) * 4 + r2] * second[r2 * 8 + o % 4 * 2 + i % 2];
          }
        }
        ASSERT_NEAR(weight[(o * 6 + tap) * 6 + i], sum, 1e-6) << o << ' ' << tap << ' ' << i;
      }
    }
  }
}

TEST(TtGaripovConv2d, ComputesWhatItsComposedWeightDoes) {
  for (const TtGaripovConv2dConfig& config : kConvolutions) {
    TtGaripovConv2d layer(config);
    SCOPED_TRACE(to_json(layer.config()));
    layer.reset_parameters(1);
    const Tensor x = random_tensor({2, 7, 5, config.conv.in}, DType::f32, 2);
    const Var x1(x, true), x2(x, true);
    const Var y = layer.forward(x1, {});
    const Var expected = conv2d(x2, Var(layer.dense_weight()), bias_of(layer, config.conv), options_of(config.conv));
    EXPECT_EQ(y.shape(), layer.output_shape(x.shape()));
    EXPECT_LT(linalg::relative_error(y.value(), expected.value()), 1e-5);
    EXPECT_LT(linalg::relative_error(layer.to_dense()->forward(x1, {}).value(), expected.value()), 1e-5);
    const Tensor grad_y = random_tensor(y.shape(), DType::f32, 3);
    for (const auto& parameter : layer.parameters()) parameter->zero_grad();
    backward(y, grad_y);
    std::vector<Var> exact{Var(x.to(DType::f64))};
    if (config.conv.bias) exact.emplace_back(layer.parameter("bias").value().to(DType::f64), true);
    for (const auto& parameter : layer.parameters()) {
      if (parameter->name() != "bias") exact.emplace_back(parameter->value().to(DType::f64), true);
    }
    backward(by_cores(exact, whole_of(layer)), grad_y.to(DType::f64));
    const std::size_t first_core = config.conv.bias ? 2 : 1;
    for (std::size_t k = 0; k + first_core < exact.size(); ++k) {
      const Tensor& found = layer.parameter(str("core", k + 1)).grad();
      EXPECT_LT(linalg::relative_error(found, exact[first_core + k].grad().to(DType::f32)), 1e-4) << k;
    }
    backward(expected, grad_y);
    EXPECT_LT(linalg::relative_error(x1.grad(), x2.grad()), 1e-5);
  }
}

TEST(TtGaripovConv2d, GradientsMatchFiniteDifferences) {
  for (const TtGaripovConv2dConfig& config : kConvolutions) {
    const TtGaripovConv2d layer(config);
    SCOPED_TRACE(to_json(layer.config()));
    std::vector<Tensor> inputs;
    inputs.push_back(random_tensor({2, 5, 5, config.conv.in}, DType::f64, 4));
    if (config.conv.bias) inputs.push_back(random_tensor({config.conv.out}, DType::f64, 5));
    for (const auto& parameter : layer.parameters()) {
      if (parameter->name() != "bias") inputs.push_back(random_tensor(parameter->value().shape(), DType::f64, 6 + inputs.size()));
    }
    const TtGaripovConv2dConfig whole = whole_of(layer);
    EXPECT_EQ(check_gradients([&](std::span<const Var> given) { return by_cores(given, whole); }, inputs), "");
  }
}

TEST(TtGaripovConv2d, AWeightIsTheTensorOfItsModesAndBack) {
  for (const TtGaripovConv2dConfig& config : kConvolutions) {
    const TtGaripovConv2d layer(config);
    const auto [conv, out_modes, in_modes, ranks] = whole_of(layer);
    const Tensor weight = random_tensor({conv.out, conv.kernel.h, conv.kernel.w, conv.in}, DType::f32, 7);
    const Tensor tensor = garipov_tensor(weight, out_modes, in_modes);
    EXPECT_EQ(tensor.shape(), shape_of(garipov_modes(conv.kernel, out_modes, in_modes)));
    EXPECT_EQ(values(garipov_weight(tensor, conv.kernel, out_modes, in_modes)), values(weight));
  }
}

// The published network's layers (Garipov et al. 2016: 3.23 times fewer parameters): 9 r1 + r1 o1 i1 r2 + r2 o2 i2 r3 + r3 o3 i3.
TEST(TtGaripovConv2d, HasThePublishedParameters) {
  const auto parameters = [](std::int64_t in, std::int64_t out, const Modes& in_modes, const Modes& out_modes,
                             const Modes& ranks) {
    const TtGaripovConv2d layer({.conv = {.in = in, .out = out, .padding = {1, 1}, .bias = false},
                                 .out_modes = out_modes,
                                 .in_modes = in_modes,
                                 .ranks = ranks});
    Trace trace;
    EXPECT_EQ(layer.output_shape({2, 16, 16, in}, &trace), (Shape{2, 16, 16, out}));
    EXPECT_EQ(trace.at(0).macs, 256 * 9 * in * out);  // that of the dense convolution
    return trace.at(0).parameters;
  };
  EXPECT_EQ(parameters(64, 64, {4, 4, 4}, {4, 4, 4}, {22, 20, 20}), 198 + 7040 + 6400 + 320);
  EXPECT_EQ(parameters(64, 128, {4, 4, 4}, {4, 8, 4}, {27, 22, 22}), 243 + 9504 + 15488 + 352);
  EXPECT_EQ(parameters(128, 128, {4, 8, 4}, {4, 8, 4}, {23, 23, 23}), 207 + 8464 + 33856 + 368);
}

TEST(TtGaripovConv2d, FreshWeightsHaveTheVarianceOfADenseLayer) {
  TtGaripovConv2d layer({.conv = {.in = 64, .out = 64}, .ranks = {22, 20}});
  double sum = 0;
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    layer.reset_parameters(seed);
    const Tensor weight = layer.dense_weight();
    for (const double w : values(weight)) sum += w * w / static_cast<double>(weight.numel()) / 8;
  }
  EXPECT_NEAR(sum, 2.0 / (64 * 9), 0.15 * 2.0 / (64 * 9));
}

TEST(TtGaripovConv2d, BatchNormFoldsIntoItAsADenseConvolution) {
  Sequential network;
  network.add_child("conv", std::make_unique<TtGaripovConv2d>(kConvolutions[0]));
  network.add_child("bn", std::make_unique<BatchNorm>(BatchNormConfig{.channels = 4}));
  initialize(network, 4);
  network.child("conv").parameter("bias").set_value(random_tensor({4}, DType::f32, 8));
  network.child("bn").buffers().at(0)->value.copy_from(random_tensor({4}, DType::f32, 5));
  const Var x(random_tensor({2, 5, 4, 6}, DType::f32, 6));
  const std::unique_ptr<Module> copy = for_inference(network);
  EXPECT_EQ(copy->child("bn").kind(), "identity");
  EXPECT_EQ(copy->child("conv").kind(), "conv2d");
  EXPECT_LT(largest_difference(copy->forward(x, {}).value(), network.forward(x, {}).value()), 1e-5);
}

TEST(TtGaripovConv2d, UnderConstantWeightsItComputesTheSame) {
  const NoGrad no_grad;
  TtGaripovConv2d layer(kConvolutions[0]);
  layer.reset_parameters(1);
  const Var x(random_tensor({2, 7, 5, 6}, DType::f32, 2));
  const Tensor y = layer.forward(x, {}).value(), rectified = relu(Var(y)).value();
  const ConstantWeights constant;
  for (int i = 0; i < 2; ++i) {
    EXPECT_LT(linalg::relative_error(layer.forward(x, {}).value(), y), 1e-6);
    EXPECT_LT(linalg::relative_error(layer.add_relu(x, {}, {}).value(), rectified), 1e-6);
  }
}

TEST(TtGaripovConv2d, ConfigsRefuseModesAndRanksThatCannotBe) {
  const auto fault = [](const char* json) {
    return message_of<ConfigError>([&] { read<TtGaripovConv2dConfig>(parse_json(json, "test")); });
  };
  EXPECT_EQ(fault(R"({"in": 4, "out": 8, "out_modes": [2, 2, 2]})"), "test: out has 3 modes, in has 2; tt needs as many of each");
  EXPECT_EQ(fault(R"({"in": 4, "out": 8, "out_modes": [8], "in_modes": [4]})"), "test: tt needs two modes at least");
  EXPECT_EQ(fault(R"({"in": 4, "out": 8, "in_modes": [2, 3]})"), "test: in_modes 2·3 is 6, in is 4");
  EXPECT_EQ(fault(R"({"in": 4, "out": 8, "ranks": [2, 2, 2]})"), "test: ranks: names 3 ranks, the modes 9·4·8 have 2");
  EXPECT_EQ(fault(R"({"in": 4, "out": 8, "ranks": [2, 0]})"), "test: ranks[1]: is 0; must be at least 1");
  EXPECT_EQ(fault(R"({"in": 4, "out": 8, "ranks": [32, 2]})"), "");
  EXPECT_EQ(fault(R"({"in": 4, "out": 8, "ranks": [10, 8]})"),
            "test: ranks: r1 is 10: core2, [10, 4, 8], is larger than the whole weight of 288 elements");
  EXPECT_EQ(fault(R"({"in": 4, "out": 8, "ranks": [4000000000000000000, 4000000000000000000]})"),
            "test: ranks: r1 is 4000000000000000000: core1, [1, 9, 4000000000000000000], is larger than the whole weight of 288 "
            "elements");
  EXPECT_EQ(fault(R"({"in": 4, "out": 8, "groups": 2})"),
            "test: groups: unknown key; known: in out kernel stride padding dilation out_modes in_modes ranks bias");
  EXPECT_EQ(message_of<ConfigError>([] { TtGaripovConv2d({.conv = {.in = 4, .out = 8, .groups = 2}}); }),
            "tt_garipov_conv2d: groups is 2; needs 1");
  EXPECT_EQ(message_of<ConfigError>([] {
              TtGaripovConv2d({.conv = {.in = 4, .out = 8}, .ranks = {2, 0}});
            }),
            "tt_garipov_conv2d: r2 is 0; must be at least 1");
}

}  // namespace
}  // namespace tessera::testing
