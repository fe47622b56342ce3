#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/autograd/backward.h"
#include "core/config/read.h"
#include "core/linalg/mode_product.h"
#include "core/linalg/relative_error.h"
#include "core/linalg/unfold.h"
#include "core/ops/conv2d.h"
#include "core/support/error.h"
#include "layers/tucker2_conv2d.h"
#include "tests/core/linalg/linalg_support.h"
#include "tests/support/message_of.h"

namespace tessera::testing {
namespace {

// Square kernels, odd channels, stride, dilation, rectangles, one pixel of output, one channel.
const std::vector<Conv2dConfig> kLayers{
    {.in = 5, .out = 7, .kernel = {3, 3}, .padding = {1, 1}},
    {.in = 8, .out = 3, .kernel = {3, 5}, .stride = {2, 1}, .padding = {0, 2}, .bias = false},
    {.in = 4, .out = 6, .kernel = {3, 3}, .padding = {2, 2}, .dilation = {2, 2}},
    {.in = 1, .out = 1, .kernel = {2, 2}},
    {.in = 3, .out = 13, .kernel = {7, 9}, .bias = false},
};

std::unique_ptr<Conv2d> random_conv(const Conv2dConfig& config) {
  auto conv = std::make_unique<Conv2d>(config);
  conv->reset_parameters(7);
  if (conv->bias() != nullptr) conv->bias()->set_value(random_tensor({config.out}, DType::f32, 8));
  return conv;
}

Tensor image(std::int64_t channels) { return random_tensor({2, 7, 9, channels}, DType::f32, 9); }

double largest(const Tensor& tensor) { return largest_difference(tensor, Tensor::zeros(tensor.shape())); }

Conv2dOptions op_options(const Conv2dConfig& config) {
  return {.stride = config.stride, .padding = config.padding, .dilation = config.dilation};
}

TEST(Tucker2Conv2d, FullRankEqualsTheDenseLayer) {
  for (const Conv2dConfig& config : kLayers) {
    SCOPED_TRACE(str(config.in, " -> ", config.out));
    const auto dense = random_conv(config);
    const auto factored = Tucker2Conv2d::from_dense(*dense, {.out = config.out, .in = config.in});
    const Tensor expected = dense->forward(Var(image(config.in)), {}).value();
    const Tensor y = factored->forward(Var(image(config.in)), {}).value();
    EXPECT_LT(largest_difference(y, expected), 1e-4 * std::max(1.0, largest(expected)));
    EXPECT_LT(linalg::relative_error(factored->dense_weight(), dense->weight().value()), 1e-5);
  }
}

TEST(Tucker2Conv2d, ForwardEqualsTheReconstructedWeights) {
  for (const Conv2dConfig& config : kLayers) {
    SCOPED_TRACE(str(config.in, " -> ", config.out));
    const auto dense = random_conv(config);
    const Tucker2Ranks half{.out = (config.out + 1) / 2, .in = (config.in + 1) / 2};
    for (const Tucker2Ranks ranks : {half, Tucker2Ranks{half.out, config.in}, Tucker2Ranks{config.out, half.in}}) {
      const auto factored = Tucker2Conv2d::from_dense(*dense, ranks);
      const Var bias = dense->bias() != nullptr ? dense->bias()->var() : Var();
      const Var x(image(config.in));
      const Tensor expected = conv2d(x, Var(factored->dense_weight()), bias, op_options(factored->options().conv)).value();
      EXPECT_LT(largest_difference(factored->forward(x, {}).value(), expected), 1e-4 * std::max(1.0, largest(expected)));
    }
  }
}

TEST(Tucker2Conv2d, BackToDenseComputesTheSame) {
  for (const Conv2dConfig& config : kLayers) {
    SCOPED_TRACE(str(config.in, " -> ", config.out));
    const auto original = random_conv(config);
    original->weight().set_trainable(false);
    const auto factored = Tucker2Conv2d::from_dense(*original, {.out = (config.out + 1) / 2, .in = (config.in + 1) / 2});
    const std::unique_ptr<Module> dense = factored->to_dense();
    EXPECT_EQ(to_json(dense->config()), to_json(original->config()));
    EXPECT_FALSE(dense->parameter("weight").trainable());
    const Var x(image(config.in));
    const Tensor expected = factored->forward(x, {}).value();
    EXPECT_LT(largest_difference(dense->forward(x, {}).value(), expected), 1e-4 * std::max(1.0, largest(expected)));
  }
}

TEST(Tucker2Conv2d, AModeOfFullRankHasNoFactor) {
  const auto dense = random_conv({.in = 5, .out = 7, .stride = {2, 2}, .padding = {1, 1}});
  const auto names_at = [&](Tucker2Ranks ranks) {
    const auto factored = Tucker2Conv2d::from_dense(*dense, ranks);
    std::string names;
    for (const auto& parameter : factored->parameters()) names += parameter->name() + ' ';
    return names;
  };
  EXPECT_EQ(names_at({.out = 6, .in = 4}), "in_factor core out_factor bias ");
  EXPECT_EQ(names_at({.out = 6, .in = 5}), "core out_factor bias ");
  EXPECT_EQ(names_at({.out = 7, .in = 4}), "in_factor core bias ");
  EXPECT_EQ(names_at({.out = 7, .in = 5}), "core bias ");

  const auto one = Tucker2Conv2d::from_dense(*dense, {.out = 4, .in = 5});
  Trace trace;
  EXPECT_EQ(one->output_shape({2, 7, 9, 5}, &trace), dense->output_shape({2, 7, 9, 5}));
  EXPECT_EQ(trace.at(0).macs, 4 * 5 * (9 * 5 * 4 + 4 * 7));
  EXPECT_EQ(trace.at(0).parameters, 9 * 5 * 4 + 4 * 7 + 7);
  // The best approximation in one mode discards only its smallest singular values.
  const std::vector<double> spectrum = linalg::mode_spectrum(dense->weight().value(), 0);
  double all = 0;
  double cut = 0;
  for (std::size_t i = 0; i < spectrum.size(); ++i) {
    all += spectrum[i] * spectrum[i];
    if (i >= 4) cut += spectrum[i] * spectrum[i];
  }
  EXPECT_NEAR(linalg::relative_error(one->dense_weight(), dense->weight().value()), std::sqrt(cut / all), 1e-5);

  const auto whole = random_conv({.in = 5, .out = 7});
  whole->weight().value().fill(std::numeric_limits<double>::quiet_NaN());
  EXPECT_THROW(Tucker2Conv2d::from_dense(*whole, {.out = 7, .in = 5}), NumericError);
}

TEST(Tucker2Conv2d, ErrorFallsWithRankAndMeetsTheHosvdBound) {
  const auto dense = random_conv({.in = 8, .out = 9});
  const Tensor& weight = dense->weight().value();
  const std::vector<double> out = linalg::mode_spectrum(weight, 0);
  const std::vector<double> in = linalg::mode_spectrum(weight, 3);
  const auto tail = [](const std::vector<double>& s, std::int64_t rank) {
    double sum = 0;
    for (std::size_t i = static_cast<std::size_t>(rank); i < s.size(); ++i) sum += s[i] * s[i];
    return sum;
  };
  double last = 1;
  for (std::int64_t rank = 1; rank <= 8; ++rank) {
    const double error = linalg::relative_error(Tucker2Conv2d::from_dense(*dense, {rank, rank})->dense_weight(), weight);
    EXPECT_LT(error, last);
    EXPECT_LE(error * error, (tail(out, rank) + tail(in, rank)) / tail(out, 0) + 1e-6);
    last = error;
  }
}

// With dW the gradient of the composed weight W = core x_0 A x_3 B': dcore = dW x_0 A' x_3 B, dA = dW_(0) (core x_3 B')_(0)',
// dB' = dW_(3) (core x_0 A)_(3)'.
TEST(Tucker2Conv2d, GradientsFollowFromTheComposedWeights) {
  const auto dense = random_conv({.in = 5, .out = 7, .stride = {2, 2}, .padding = {1, 1}});
  const auto factored = Tucker2Conv2d::from_dense(*dense, {.out = 4, .in = 3});
  const Var x(image(5), true);
  const Var composed(factored->dense_weight(), true);
  const Var composed_x(image(5), true);
  const Var expected = conv2d(composed_x, composed, Var(), op_options(factored->options().conv));
  const Tensor grad_y = random_tensor(expected.shape(), DType::f32, 4);
  backward(expected, grad_y);
  backward(factored->forward(x, {}), grad_y);

  const Tensor a = factored->parameter("out_factor").value().reshape({7, 4});
  const Tensor b = factored->parameter("in_factor").value().reshape({3, 5});
  const Tensor core = factored->parameter("core").value();
  const Tensor& dw = composed.grad();
  const Tensor dcore = linalg::mode_product(linalg::mode_product(dw, a.permute({1, 0}), 0), b, 3);
  const Tensor with_in = linalg::mode_product(core, b.permute({1, 0}), 3);
  const Tensor da = naive_matmul(linalg::unfold(dw, 0), linalg::unfold(with_in, 0).permute({1, 0}));
  const Tensor with_out = linalg::mode_product(core, a, 0);
  const Tensor db = naive_matmul(linalg::unfold(with_out, 3), linalg::unfold(dw, 3).permute({1, 0}));

  const auto expect_gradient = [&](std::string_view name, const Tensor& gradient) {
    const Tensor reached = factored->parameter(name).grad().reshape(gradient.shape());
    EXPECT_LT(linalg::relative_error(reached, gradient), 1e-5) << name;  // f32 sums of 2 * 4 * 5 pixels
  };
  expect_gradient("core", dcore);
  expect_gradient("out_factor", da);
  expect_gradient("in_factor", db);
  EXPECT_LT(linalg::relative_error(x.grad(), composed_x.grad()), 1e-5);
  const Tensor rows = grad_y.reshape({grad_y.numel() / 7, 7});
  EXPECT_LT(linalg::relative_error(factored->parameter("bias").grad(),
                                   naive_matmul(Tensor::full({1, rows.dim(0)}, 1.0), rows).reshape({7})),
            1e-5);
}

TEST(Tucker2Conv2d, ShapeAndCostAreThoseOfItsThreeConvolutions) {
  const auto dense = random_conv({.in = 5, .out = 7, .stride = {2, 2}, .padding = {1, 1}});
  const auto factored = Tucker2Conv2d::from_dense(*dense, {.out = 4, .in = 3});
  const Shape input{2, 7, 9, 5};
  Trace trace;
  EXPECT_EQ(factored->output_shape(input, &trace), dense->output_shape(input));
  ASSERT_EQ(trace.size(), 1u);
  EXPECT_EQ(trace[0].macs, 7 * 9 * 5 * 3 + 4 * 5 * (9 * 3 * 4 + 4 * 7));
  EXPECT_EQ(trace[0].parameters, 5 * 3 + 9 * 3 * 4 + 4 * 7 + 7);
  EXPECT_EQ(trace[0].kind, "tucker2_conv2d");
}

TEST(Tucker2Conv2d, FreshWeightsHaveTheVarianceOfADenseLayer) {
  Tucker2Conv2d layer({.conv = {.in = 48, .out = 64}, .rank_in = 24, .rank_out = 32});
  layer.reset_parameters(3);
  double sum = 0;
  const std::vector<double> weight = values(layer.dense_weight());
  for (const double w : weight) sum += w * w;
  const double expected = 2.0 / (64 * 9);
  EXPECT_NEAR(sum / static_cast<double>(weight.size()), expected, 0.15 * expected);  // the sampling error of 7,000 core entries

  Tucker2Conv2d again({.conv = {.in = 48, .out = 64}, .rank_in = 24, .rank_out = 32});
  again.reset_parameters(3);
  EXPECT_EQ(values(again.dense_weight()), weight);
  again.reset_parameters(4);
  EXPECT_NE(values(again.dense_weight()), weight);
}

TEST(Tucker2Conv2d, CopiesBiasAndTrainability) {
  const auto dense = random_conv({.in = 4, .out = 6});
  dense->weight().set_trainable(false);
  const auto factored = Tucker2Conv2d::from_dense(*dense, {.out = 2, .in = 2});
  EXPECT_EQ(values(factored->parameter("bias").value()), values(dense->bias()->value()));
  EXPECT_FALSE(factored->parameter("bias").value().shares_storage(dense->bias()->value()));
  EXPECT_FALSE(factored->parameter("core").trainable());
  EXPECT_TRUE(factored->parameter("bias").trainable());
}

TEST(Tucker2Conv2d, ConfigRebuildsTheLayer) {
  const auto dense = random_conv({.in = 5, .out = 7, .kernel = {3, 1}, .stride = {2, 1}, .dilation = {1, 2}, .bias = false});
  const auto factored = Tucker2Conv2d::from_dense(*dense, {.out = 4, .in = 3});
  Tucker2Conv2d rebuilt(read<Tucker2Conv2dConfig>(factored->config()));
  for (const auto& parameter : factored->parameters()) rebuilt.parameter(parameter->name()).set_value(parameter->value());
  EXPECT_EQ(rebuilt.parameters().size(), 3u);
  const Var x(image(5));
  EXPECT_EQ(values(rebuilt.forward(x, {}).value()), values(factored->forward(x, {}).value()));
}

// Recorded choices of the clock name a layer by this text. Another text would lose the choices of earlier runs.
TEST(Tucker2Conv2d, ConfigKeepsItsText) {
  EXPECT_EQ(to_json(Tucker2Conv2d({.conv = {.in = 5, .out = 7, .bias = false}, .rank_in = 2, .rank_out = 3}).config()),
            R"({"in":5,"out":7,"kernel":3,"stride":1,"padding":0,"dilation":1,"rank_in":2,"rank_out":3,"bias":false,)"
            R"("in_factor":true,"out_factor":true})");
}

// Checkpoints and model.json files from before these keys existed have such configs.
TEST(Tucker2Conv2d, AConfigThatNamesNoFactorsHasBoth) {
  Tucker2Conv2dConfig config = read<Tucker2Conv2dConfig>(
      parse_json(R"({"in": 3, "out": 4, "kernel": 3, "rank_in": 3, "rank_out": 4})", "test"));
  Tucker2Conv2d square(config);
  EXPECT_EQ(square.parameter("in_factor").value().shape(), Shape({3, 1, 1, 3}));
  EXPECT_EQ(square.parameter("out_factor").value().shape(), Shape({4, 1, 1, 4}));
  EXPECT_EQ(message_of<ConfigError>([] { Tucker2Conv2d({.conv = {.in = 5, .out = 7}, .rank_in = 4, .in_factor = false}); }),
            "tucker2_conv2d: only a mode of full rank can do without its factor");
  EXPECT_EQ(message_of<ConfigError>([] {
              const char* const text = R"({"in": 3, "out": 4, "rank_in": 3, "rank_out": 2, "out_factor": false})";
              read<Tucker2Conv2dConfig>(parse_json(text, "test"));
            }),
            "test: out_factor: may be false where rank_out is out");
}

TEST(Tucker2Conv2d, MessagesNameModeSizeAndLegalRange) {
  EXPECT_EQ(message_of<ConfigError>([] { Tucker2Conv2d({.conv = {.in = 5, .out = 7}, .rank_in = 6}); }),
            "tucker2_conv2d: in rank is 6, the mode has size 5; legal range is 1..5");
  EXPECT_EQ(message_of<ConfigError>(
                [] { check_ranks("layer1.0.conv1", "conv2d", tucker2_rank_problems(7, 5, 9, {.out = 0, .in = 1})); }),
            "layer 'layer1.0.conv1': out rank is 0, the mode has size 7; legal range is 1..7");
  EXPECT_EQ(message_of<ConfigError>([] { Tucker2Conv2d({.conv = {.in = 5, .out = 30, .kernel = {3, 1}}, .rank_in = 2, .rank_out = 7}); }),
            "tucker2_conv2d: out rank is 7, more than the 3 taps times the in rank 2; no core has it");
  EXPECT_TRUE(tucker2_rank_problems(30, 5, 3, {.out = 6, .in = 2}).empty());
  EXPECT_EQ(tucker2_rank_problems(2, 30, 3, {.out = 2, .in = 7}).front().rank, "in");
  const auto grouped = random_conv({.in = 4, .out = 6, .groups = 2});
  EXPECT_NE(message_of<ConfigError>([&] { Tucker2Conv2d::from_dense(*grouped, {}); }).find("groups is 2; Tucker-2 needs 1"),
            std::string::npos);
  Value config = Value::map();
  config.set("rank_out", 5);
  EXPECT_EQ(message_of<ConfigError>([&] { read<Tucker2Conv2dConfig>(config); }), "rank_out: out rank is 5, the mode has size 1; legal range is 1..1");
}

}  // namespace
}  // namespace tessera::testing
