#include <gtest/gtest.h>

#include <cmath>

#include "core/autograd/backward.h"
#include "core/config/read.h"
#include "core/linalg/relative_error.h"
#include "core/linalg/svd.h"
#include "core/ops/conv2d.h"
#include "core/ops/linear.h"
#include "core/support/error.h"
#include "layers/batch_norm.h"
#include "layers/fold.h"
#include "layers/sequential.h"
#include "layers/svd_conv2d.h"
#include "layers/svd_linear.h"
#include "tests/core/linalg/linalg_support.h"
#include "tests/support/message_of.h"

namespace tessera::testing {
namespace {

double variance(const Tensor& weight) {
  double sum = 0;
  for (const double w : values(weight)) sum += w * w;
  return sum / static_cast<double>(weight.numel());
}

TEST(SvdFactors, AreTheNearestOfTheirRankAndShareTheScale) {
  const Tensor weight = random_tensor({11, 7}, DType::f64, 3);
  const linalg::Svd svd = linalg::svd(weight);
  const std::vector<double> s = values(svd.s);
  for (const std::int64_t rank : {1, 4, 7}) {
    const SvdFactors factors = svd_project(weight, rank);
    double tail = 0, all = 0;
    for (std::size_t i = 0; i < s.size(); ++i) {
      all += s[i] * s[i];
      if (static_cast<std::int64_t>(i) >= rank) tail += s[i] * s[i];
    }
    EXPECT_NEAR(linalg::relative_error(svd_compose(factors), weight), std::sqrt(tail / all), 1e-10);
    EXPECT_NEAR(variance(factors.out_factor) * 11, variance(factors.in_factor) * 7, 1e-12);
  }
}

// y = x in' out' + b: the composed layer's gradient dW gives d(out) = dW in', d(in) = out' dW.
TEST(SvdLinear, GradientsFollowFromTheComposedWeight) {
  SvdLinear layer({.in = 7, .out = 5, .rank = 3});
  layer.reset_parameters(1);
  const Tensor x = random_tensor({4, 7}, DType::f32, 2);
  const Tensor grad_y = random_tensor({4, 5}, DType::f32, 3);
  const Var x1(x, true), x2(x, true), weight(layer.dense_weight(), true);
  backward(layer.forward(x1, {}), grad_y);
  backward(linear(x2, weight, layer.parameter("bias").var()), grad_y);
  const Tensor out = layer.parameter("out_factor").value();
  const Tensor in = layer.parameter("in_factor").value();
  const Tensor d_out = naive_matmul(weight.grad(), in.permute({1, 0}));
  const Tensor d_in = naive_matmul(out.permute({1, 0}), weight.grad());
  EXPECT_LT(linalg::relative_error(layer.parameter("out_factor").grad(), d_out), 1e-5);
  EXPECT_LT(linalg::relative_error(layer.parameter("in_factor").grad(), d_in), 1e-5);
  EXPECT_LT(linalg::relative_error(x1.grad(), x2.grad()), 1e-5);
}

TEST(SvdConv2d, GradientsFollowFromTheComposedWeight) {
  SvdConv2d layer({.conv = {.in = 6, .out = 5, .kernel = {1, 1}, .stride = {2, 1}, .padding = {1, 0}, .bias = false}, .rank = 2});
  layer.reset_parameters(1);
  const Tensor x = random_tensor({2, 5, 3, 6}, DType::f32, 2);
  const Var x1(x, true), x2(x, true), weight(layer.dense_weight(), true);
  const Var y = layer.forward(x1, {});
  const Tensor grad_y = random_tensor(y.shape(), DType::f32, 3);
  backward(y, grad_y);
  backward(conv2d(x2, weight, {}, {.stride = {2, 1}, .padding = {1, 0}}), grad_y);
  const Tensor dw = weight.grad().reshape({5, 6});
  const Tensor d_out = naive_matmul(dw, layer.parameter("in_factor").value().reshape({2, 6}).permute({1, 0}));
  const Tensor d_in = naive_matmul(layer.parameter("out_factor").value().reshape({5, 2}).permute({1, 0}), dw);
  EXPECT_LT(linalg::relative_error(layer.parameter("out_factor").grad().reshape({5, 2}), d_out), 1e-5);
  EXPECT_LT(linalg::relative_error(layer.parameter("in_factor").grad().reshape({2, 6}), d_in), 1e-5);
  EXPECT_LT(linalg::relative_error(x1.grad(), x2.grad()), 1e-5);
}

TEST(SvdLinear, FreshWeightsHaveTheVarianceOfADenseLayer) {
  SvdLinear layer({.in = 96, .out = 64, .rank = 24});
  layer.reset_parameters(3);
  const double expected = 1.0 / (3 * 96);
  EXPECT_NEAR(variance(layer.dense_weight()), expected, 0.1 * expected);
  SvdLinear again({.in = 96, .out = 64, .rank = 24});
  again.reset_parameters(3);
  EXPECT_EQ(values(again.dense_weight()), values(layer.dense_weight()));
}

TEST(SvdConv2d, FreshWeightsHaveTheVarianceOfADenseLayer) {
  SvdConv2d layer({.conv = {.in = 96, .out = 64, .kernel = {1, 1}}, .rank = 24});
  layer.reset_parameters(3);
  const double expected = 2.0 / 64;
  EXPECT_NEAR(variance(layer.dense_weight()), expected, 0.1 * expected);
}

TEST(SvdConv2d, BatchNormFoldsIntoIt) {
  Sequential network;
  const Conv2dConfig conv{.in = 6, .out = 5, .kernel = {1, 1}, .bias = false};
  network.add_child("conv", std::make_unique<SvdConv2d>(SvdConv2dConfig{.conv = conv, .rank = 2}));
  network.add_child("bn", std::make_unique<BatchNorm>(BatchNormConfig{.channels = 5}));
  initialize(network, 4);
  network.child("bn").buffers().at(0)->value.copy_from(random_tensor({5}, DType::f32, 5));
  const Var x(random_tensor({2, 4, 4, 6}, DType::f32, 6));
  const std::unique_ptr<Module> copy = for_inference(network);
  EXPECT_EQ(copy->child("bn").kind(), "identity");
  EXPECT_LT(largest_difference(copy->forward(x, {}).value(), network.forward(x, {}).value()), 1e-5);
}

TEST(Svd, ConfigsRefuseRanksThatCannotBe) {
  EXPECT_EQ(message_of<ConfigError>([] { SvdLinear({.in = 5, .out = 7, .rank = 6}); }),
            "svd_linear: rank is 6, the weight is 7 x 5; legal range is 1..5");
  EXPECT_EQ(message_of<ConfigError>([] { SvdConv2d({.conv = {.in = 5, .out = 7, .kernel = {1, 1}}, .rank = 6}); }),
            "svd_conv2d: rank is 6, the weight is 7 x 5; legal range is 1..5");
  EXPECT_EQ(message_of<ConfigError>([] { read<SvdLinearConfig>(parse_json(R"({"in": 4, "out": 3, "rank": 4})", "test")); }),
            "test: rank: rank is 4, the weight is 3 x 4; legal range is 1..3");
}

}  // namespace
}  // namespace tessera::testing
