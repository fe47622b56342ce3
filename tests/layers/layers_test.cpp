// What modules add to their ops: shapes, modes, initial values and the random streams they draw from.
#include <gtest/gtest.h>

#include <cmath>

#include "core/autograd/backward.h"
#include "core/rng.h"
#include "core/support/error.h"
#include "layers/activation.h"
#include "layers/batch_norm.h"
#include "layers/builtin.h"
#include "layers/conv2d.h"
#include "layers/dropout.h"
#include "layers/layer_norm.h"
#include "layers/linear.h"
#include "layers/models/model.h"
#include "layers/pool2d.h"
#include "layers/residual.h"
#include "layers/residual_block.h"
#include "layers/sequential.h"
#include "layers/svd_linear.h"
#include "layers/tt_linear.h"
#include "layers/tucker2_conv2d.h"
#include "tests/support/message_of.h"

namespace tessera {
namespace {

Tensor random_tensor(const Shape& shape, std::uint64_t seed = 3) {
  const Tensor x = Tensor::empty(shape);
  fill_normal(x, RngStream(seed, "test", "input"), 0, 1);
  return x;
}

Tensor run(Module& module, const Tensor& x, const Context& context = {}) {
  const NoGrad no_grad;
  return module.forward(Var(x), context).value();
}

struct Moments {
  double mean = 0;
  double stddev = 0;
  double largest = 0;
};
Moments moments(const Tensor& tensor) {
  Moments m;
  double squares = 0;
  const double n = static_cast<double>(tensor.numel());
  for (const float v : tensor.to_vector<float>()) {
    m.mean += v / n;
    squares += static_cast<double>(v) * v / n;
    m.largest = std::max(m.largest, std::abs(static_cast<double>(v)));
  }
  m.stddev = std::sqrt(squares - m.mean * m.mean);
  return m;
}

void expect_declared_shape(Module& module, const Shape& input) {
  SCOPED_TRACE(str(module.kind(), ' ', input));
  EXPECT_EQ(run(module, random_tensor(input)).shape(), module.output_shape(input));
}

TEST(Layers, OutputShapeIsTheForwardsShape) {
  for (const Shape& image : {Shape{2, 7, 5, 4}, Shape{1, 3, 3, 4}}) {
    Conv2d conv({.in = 4, .out = 6, .kernel = {3, 2}, .stride = {2, 1}, .padding = {1, 1}, .groups = 2});
    MaxPool2d max_pool({.kernel = {3, 3}, .stride = Extent{2, 2}, .padding = {1, 1}});
    AvgPool2d avg_pool({.kernel = {2, 2}});
    BatchNorm batch({.channels = 4});
    GlobalAvgPool global;
    expect_declared_shape(conv, image);
    expect_declared_shape(max_pool, image);
    expect_declared_shape(avg_pool, image);
    expect_declared_shape(batch, image);
    expect_declared_shape(global, image);
    expect_declared_shape(*make_basic_block({.in = 4, .out = 7, .stride = 2, .shortcut = "option_a"}), image);
    expect_declared_shape(*make_basic_block({.in = 4, .out = 7, .stride = 2, .shortcut = "projection"}), image);
    expect_declared_shape(*make_bottleneck({.in = 4, .out = 4}), image);
  }
  Linear linear({.in = 5, .out = 3});
  LayerNorm norm({.channels = 5});
  expect_declared_shape(linear, {2, 7, 5});
  expect_declared_shape(norm, {2, 7, 5});
}

TEST(Layers, EveryNamedModelEvaluatesToItsDeclaredShape) {
  for (const char* name : {"mlp", "lenet5", "resnet20", "resnet18", "resnet50", "vgg16", "mobilenet_v1"}) {
    SCOPED_TRACE(name);
    const Shape input{1, 32, 32, 3};
    const auto model = build_model(named_model(name, 7), input);
    EXPECT_EQ(run(*model, random_tensor(input)).shape(), (Shape{1, 7}));
    EXPECT_EQ(model->output_shape(input), (Shape{1, 7}));
  }
}

TEST(Layers, EveryNamedSmallModelRunsAndReachesEveryParameter) {
  for (const char* name : {"mlp", "lenet5", "resnet8"}) {
    SCOPED_TRACE(name);
    const Shape input{2, 32, 32, 3};
    const auto model = build_model(named_model(name, 5), input);
    initialize(*model, 1);
    const StepState step;
    const Var y = model->forward(Var(random_tensor(input)), {.training = true, .seed = 1, .step = &step});
    EXPECT_EQ(y.shape(), (Shape{2, 5}));
    backward(y, random_tensor({2, 5}, 9));
    for (const NamedParameter& named : named_parameters(*model)) {
      ASSERT_TRUE(named.parameter->grad().defined()) << named.path;
      EXPECT_GT(moments(named.parameter->grad()).largest, 0) << named.path;
    }
  }
}

TEST(Layers, OptionASubsamplesAndPadsChannelsInTheMiddle) {
  const auto block = make_basic_block({.in = 2, .out = 5, .stride = 2, .shortcut = "option_a"});
  // With zero convolutions only the shortcut is left; relu passes the positive input.
  const Tensor x = Tensor::from(std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18}, {1, 3, 3, 2});
  const std::vector<float> expected{0, 1, 2, 0, 0, 0, 5, 6, 0, 0, 0, 13, 14, 0, 0, 0, 17, 18, 0, 0};
  EXPECT_EQ(run(*block, x).to_vector<float>(), expected);
}

TEST(Layers, BatchNormTrainsOnTheBatchAndEvaluatesOnTheBuffers) {
  BatchNorm norm({.channels = 3, .momentum = 0.25});
  const Tensor x = random_tensor({11, 3});
  const Tensor evaluated = run(norm, x);
  for (std::int64_t i = 0; i < x.numel(); ++i) EXPECT_NEAR(evaluated.data<float>()[i], x.data<float>()[i], 2e-5);
  EXPECT_EQ(norm.buffers()[0]->value.to_vector<float>(), (std::vector<float>{0, 0, 0}));
  const StepState step;
  const Tensor trained = run(norm, x, {.training = true, .step = &step});
  EXPECT_NEAR(moments(trained).mean, 0, 1e-6);
  EXPECT_NEAR(moments(trained).stddev, 1, 1e-4);
  double mean = 0;
  for (int i = 0; i < 11; ++i) mean += x.data<float>()[i * 3] / 11.0;
  EXPECT_NEAR(norm.buffers()[0]->value.data<float>()[0], 0.25 * mean, 1e-6);
}

TEST(Layers, BatchNormTakesStatisticsOfGivenBatches) {
  Sequential model;
  model.add_child("drop", std::make_unique<Dropout>(DropoutConfig{.p = 0.5}));
  auto& norm = static_cast<BatchNorm&>(model.add_child("norm", std::make_unique<BatchNorm>(BatchNormConfig{.channels = 1})));
  norm.buffers()[0]->value.fill(1000);  // statistics of other weights
  const auto batch = [&](std::vector<float> values) {
    return run(model, Tensor::from(values, Shape{static_cast<std::int64_t>(values.size()), 1}));
  };
  Tensor normalised;
  EXPECT_TRUE(renew_statistics(model, [&] {
    batch({0, 2});
    normalised = batch({4, 6, 8});
  }));
  EXPECT_NEAR(normalised.data<float>()[0], -std::sqrt(1.5), 1e-4) << "by the batch's own, and without dropout";
  EXPECT_NEAR(norm.buffers()[0]->value.item(), (1.0 + 6.0) / 2, 1e-6);
  EXPECT_NEAR(norm.buffers()[1]->value.item(), (2.0 + 4.0) / 2, 1e-6) << "unbiased";

  batch({100, 200});
  EXPECT_THROW(renew_statistics(model, []() { throw IoError("no batch"); }), IoError);
  batch({100, 200});
  EXPECT_NEAR(norm.buffers()[0]->value.item(), 3.5, 1e-6) << "an evaluation beside it leaves them";
  Linear linear({.in = 1, .out = 1});
  EXPECT_FALSE(renew_statistics(linear, []() { ADD_FAILURE() << "nothing to renew"; }));
}

TEST(Layers, DropoutIsTheIdentityInEvaluationAndKeyedByStepAndPathInTraining) {
  Sequential model;
  model.add_child("a", std::make_unique<Dropout>(DropoutConfig{.p = 0.5}));
  model.add_child("b", std::make_unique<Dropout>(DropoutConfig{.p = 0.5}));
  const Tensor x = Tensor::full({1009}, 1);
  EXPECT_EQ(run(model, x).to_vector<float>(), x.to_vector<float>());
  StepState step;
  const Context context{.training = true, .seed = 7, .step = &step};
  const auto first = run(model.child("a"), x, context).to_vector<float>();
  EXPECT_EQ(run(model.child("a"), x, context).to_vector<float>(), first);
  EXPECT_NE(run(model.child("b"), x, context).to_vector<float>(), first);
  step.set({.step = 1});
  EXPECT_NE(run(model.child("a"), x, context).to_vector<float>(), first);
  const std::string message = message_of<InternalError>([&] { run(model.child("a"), x, {.training = true}); });
  EXPECT_EQ(message, "dropout 'a': training without a step state");
}

TEST(Layers, InitialValuesHaveTheStatisticsOfTorch) {
  Conv2d conv({.in = 32, .out = 64});
  initialize(conv, 5);
  const Moments normal = moments(conv.weight().value());
  EXPECT_NEAR(normal.mean, 0, 0.002);
  EXPECT_NEAR(normal.stddev, std::sqrt(2.0 / (64 * 9)), 0.001);
  EXPECT_EQ(moments(conv.bias()->value()).largest, 0);
  Linear linear({.in = 100, .out = 300});
  initialize(linear, 5);
  const Moments uniform = moments(linear.weight().value());
  EXPECT_LE(uniform.largest, 0.1);
  EXPECT_GT(uniform.largest, 0.0999);
  EXPECT_NEAR(uniform.stddev, 0.1 / std::sqrt(3.0), 0.001);
  EXPECT_GT(moments(linear.bias()->value()).stddev, 0.04);
}

TEST(Layers, InitialValuesDependOnSeedAndPathOnly) {
  const auto weights = [](std::uint64_t seed, const char* name, int before) {
    Sequential model;
    for (int i = 0; i < before; ++i) model.add_child(str("other", i), std::make_unique<Linear>(LinearConfig{.in = 9, .out = 9}));
    model.add_child(name, std::make_unique<Linear>(LinearConfig{.in = 7, .out = 3}));
    initialize(model, seed);
    return model.child(name).parameter("weight").value().to_vector<float>();
  };
  EXPECT_EQ(weights(1, "fc", 0), weights(1, "fc", 2));
  EXPECT_NE(weights(1, "fc", 0), weights(2, "fc", 0));
  EXPECT_NE(weights(1, "fc", 0), weights(1, "gc", 0));
}

TEST(Layers, ParametersHaveRoles) {
  Conv2d conv({.in = 2, .out = 2});
  BatchNorm norm({.channels = 2});
  EXPECT_EQ(conv.weight().role(), ParameterRole::weight);
  EXPECT_EQ(conv.bias()->role(), ParameterRole::bias);
  EXPECT_EQ(norm.parameter("weight").role(), ParameterRole::norm);
  EXPECT_EQ(norm.parameter("bias").role(), ParameterRole::norm);
}

TEST(Layers, FaultsNameTheLayer) {
  Sequential model;
  model.add_child("fc", std::make_unique<Linear>(LinearConfig{.in = 5, .out = 3}));
  EXPECT_EQ(message_of<ShapeError>([&] { model.output_shape({2, 4}); }), "linear 'fc': input is [2, 4]; needs [..., 5]");
  EXPECT_EQ(message_of<ConfigError>([] { Conv2d({.in = 4, .out = 6, .groups = 4}); }),
            "conv2d: groups is 4, in is 4, out is 6; groups must divide both");
  EXPECT_THROW(make_basic_block({.in = 2, .out = 4}), ConfigError);
  EXPECT_THROW(make_basic_block({.in = 4, .out = 2, .shortcut = "option_a"}), ConfigError);
  EXPECT_THROW(make_bottleneck({.in = 4, .out = 6, .shortcut = "projection"}), ConfigError);
  Residual residual({});
  residual.add_child("body", std::make_unique<Linear>(LinearConfig{.in = 5, .out = 3}));
  EXPECT_NE(message_of<ShapeError>([&] { residual.output_shape({2, 5}); }).find("shortcut gives [2, 5]"), std::string::npos);
}

// 2^40 positions with 2^23 weights each. A network file of 32 MiB may ask for that much.
TEST(Layers, MultiplyAddsThatCannotBeCountedAreRefused) {
  const Conv2dConfig conv{.in = 1, .out = 1, .kernel = {2048, 4096}, .padding = {1024, 2048}, .bias = false};
  const Shape image{1, (1 << 20) - 1, (1 << 20) - 1, 1};
  const auto refusal = [&](const Module& layer) {
    EXPECT_EQ(layer.output_shape(image), (Shape{1, 1 << 20, 1 << 20, 1}));
    Trace trace;
    return message_of<ShapeError>([&] { layer.output_shape(image, &trace); });
  };
  const std::string rule =
      " '': input is [1, 1048575, 1048575, 1], output is [1, 1048576, 1048576, 1]: too many multiply-adds to count; a network "
      "must have fewer than 2^63 - 1";
  EXPECT_EQ(refusal(Conv2d(conv)), "conv2d" + rule);
  EXPECT_EQ(refusal(Tucker2Conv2d({.conv = conv, .rank_in = 1, .rank_out = 1, .in_factor = false, .out_factor = false})),
            "tucker2_conv2d" + rule);
}

TEST(Layers, RowsThatCannotBeCountedAreRefused) {
  const Shape rows{1, std::int64_t{1} << 39, 1};
  const auto refusal = [&](const Module& layer) { return message_of<ShapeError>([&] { layer.output_shape(rows); }); };
  const std::string rule = ": result too large: [1, 549755813888, 4]; must have at most 2^40 elements";
  EXPECT_EQ(refusal(Linear({.in = 1, .out = 4})), "linear" + rule);
  EXPECT_EQ(refusal(SvdLinear({.in = 1, .out = 4, .rank = 1})), "svd_linear" + rule);
  EXPECT_EQ(refusal(TtLinear({.in = 1, .out = 4, .out_modes = {2, 2}, .in_modes = {1, 1}, .ranks = {1}})), "tt_linear" + rule);
}

TEST(Layers, ConfigsAreStrict) {
  const Registry<Module> layers = builtin_layers();
  const auto refuse = [&](const char* kind, const char* json) {
    EXPECT_THROW(layers.build(kind, parse_json(json, "test")), ConfigError) << kind << ' ' << json;
  };
  refuse("conv2d", R"({"kernal": 3})");
  refuse("conv2d", R"({"stride": 0})");
  refuse("conv2d", R"({"in": 4, "out": 4, "groups": 3})");
  refuse("dropout", R"({"p": 1.0})");
  refuse("gelu", R"({"form": "exact"})");
  refuse("batch_norm", R"({"eps": 0})");
  refuse("relu", R"({"inplace": true})");
}

}  // namespace
}  // namespace tessera
