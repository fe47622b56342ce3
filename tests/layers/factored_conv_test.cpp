// Convolutions that consist of several filters in sequence (layers/factored_conv2d.h).
#include <gtest/gtest.h>

#include "core/autograd/backward.h"
#include "core/config/read.h"
#include "core/linalg/relative_error.h"
#include "core/ops/conv2d.h"
#include "core/support/error.h"
#include "layers/batch_norm.h"
#include "layers/fold.h"
#include "layers/sequential.h"
#include "tests/core/linalg/linalg_support.h"
#include "tests/layers/factored_forms.h"
#include "tests/support/message_of.h"

namespace tessera::testing {
namespace {

class FactoredConv : public ::testing::TestWithParam<FactoredForm> {};

double product(const Tensor& a, const Tensor& b) {
  const std::vector<double> x = values(a), y = values(b);
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) sum += x[i] * y[i];
  return sum;
}

// The weight is linear in each filter: a filter's gradient times any direction equals the composed weight's gradient times the
// weight that has this direction in place of the filter.
TEST_P(FactoredConv, GradientsFollowFromTheComposedWeight) {
  const auto layer = GetParam().make({.in = 6, .out = 5, .stride = {2, 1}, .padding = {1, 2}, .dilation = {1, 2}}, 4);
  layer->reset_parameters(1);
  const auto dense = layer->to_dense();
  const Tensor x = random_tensor({2, 7, 9, 6}, DType::f32, 2);
  const Var x1(x, true), x2(x, true);
  const Var y = layer->forward(x1, {});
  const Var expected = dense->forward(x2, {});
  EXPECT_LT(linalg::relative_error(y.value(), expected.value()), 1e-5);
  const Tensor grad_y = random_tensor(y.shape(), DType::f32, 3);
  backward(y, grad_y);
  backward(expected, grad_y);
  EXPECT_LT(linalg::relative_error(x1.grad(), x2.grad()), 1e-5);
  for (const FactoredConv2d::Filter& filter : layer->filters()) {
    SCOPED_TRACE(filter.parameter->name());
    const Tensor value = filter.parameter->value().clone();
    const Tensor direction = random_tensor(value.shape(), DType::f32, 5);
    const double found = product(filter.parameter->grad(), direction);
    filter.parameter->set_value(direction);
    const double wanted = product(dense->parameter("weight").grad(), layer->dense_weight());
    filter.parameter->set_value(value);
    EXPECT_NEAR(found, wanted, 1e-4 * (std::abs(wanted) + 1));
  }
}

TEST_P(FactoredConv, FreshWeightsHaveTheVarianceOfADenseLayer) {
  const auto layer = GetParam().make({.in = 48, .out = 64}, 32);
  double mean = 0;
  double expected = 0;
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    layer->reset_parameters(seed);
    const Tensor weight = layer->dense_weight();
    expected = 2.0 / static_cast<double>(64 * weight.dim(1) * weight.dim(2));
    mean += product(weight, weight) / static_cast<double>(weight.numel()) / 8;
  }
  EXPECT_NEAR(mean, expected, 0.15 * expected);
}

TEST_P(FactoredConv, BatchNormFoldsIntoIt) {
  Sequential network;
  network.add_child("conv", GetParam().make({.in = 6, .out = 5, .bias = false}, 3));
  network.add_child("bn", std::make_unique<BatchNorm>(BatchNormConfig{.channels = 5}));
  initialize(network, 4);
  network.child("bn").buffers().at(0)->value.copy_from(random_tensor({5}, DType::f32, 5));
  const Var x(random_tensor({2, 5, 4, 6}, DType::f32, 6));
  const std::unique_ptr<Module> copy = for_inference(network);
  EXPECT_EQ(copy->child("bn").kind(), "identity");
  EXPECT_EQ(copy->child("conv").kind(), network.child("conv").kind());
  EXPECT_LT(largest_difference(copy->forward(x, {}).value(), network.forward(x, {}).value()), 1e-5);
}

TEST_P(FactoredConv, RefusesGroups) {
  const std::string message = message_of<ConfigError>([] { GetParam().make({.in = 4, .out = 4, .groups = 2}, 1); });
  EXPECT_TRUE(message.ends_with(": groups is 2; needs 1")) << message;
}

INSTANTIATE_TEST_SUITE_P(Forms, FactoredConv, ::testing::ValuesIn(kFactoredForms),
                         [](const auto& form) { return form.param.name; });

TEST(FactoredConvConfigs, NameKeyAndRule) {
  const auto fault = [](auto config, const char* json) {
    return message_of<ConfigError>([&] { read<decltype(config)>(parse_json(json, "test")); });
  };
  EXPECT_EQ(fault(SpatialSvdConv2dConfig(), R"({"in": 4, "out": 2, "rank": 7})"),
            "test: rank: rank is 7, the weight is 6 x 12; legal range is 1..6");
  EXPECT_EQ(fault(CpConv2dConfig(), R"({"in": 4, "out": 2, "rank": 19})"),
            "test: rank: rank is 19, the weight is 2 x 3x3 x 4; legal range is 1..18");
  EXPECT_EQ(fault(CpConv2dConfig(), R"({"in": 4, "out": 2, "groups": 2})"),
            "test: groups: unknown key; known: in out kernel stride padding dilation rank bias batch_norm");
  EXPECT_EQ(fault(SvdConv2dConfig(), R"({"in": 4, "out": 2, "kernel": 3})"), "test: kernel: svd needs 1x1");
}

}  // namespace
}  // namespace tessera::testing
