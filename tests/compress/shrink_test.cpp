// Networks without their masked channels give the same outputs as the masked networks.
#include "compress/shrink.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "compress/pass_runner.h"
#include "compress/prune/prune.h"
#include "core/rng.h"
#include "core/support/error.h"
#include "layers/activation.h"
#include "layers/batch_norm.h"
#include "layers/builtin.h"
#include "layers/conv2d.h"
#include "layers/flatten.h"
#include "layers/linear.h"
#include "layers/model_tree.h"
#include "layers/models/model.h"
#include "layers/narrow.h"
#include "layers/pool2d.h"
#include "layers/residual.h"
#include "layers/residual_block.h"
#include "layers/sequential.h"
#include "tests/support/message_of.h"
#include "tests/support/relative_error.h"

namespace tessera::testing {
namespace {

Tensor random(const Shape& shape, std::string_view purpose, double low, double high) {
  const Tensor x = Tensor::empty(shape);
  fill_uniform(x, RngStream(5, "shrink_test", purpose), low, high);
  return x;
}

// Values as after training: statistics, affine maps and biases differ from their initial values.
void randomise(Module& network) {
  initialize(network, 11);
  for (const NamedParameter& named : named_parameters(network)) {
    if (named.parameter->role() == ParameterRole::weight) continue;
    const bool scale = named.parameter->name() == "weight";
    named.parameter->set_value(random(named.parameter->value().shape(), named.path, scale ? 0.5 : -0.3, scale ? 1.5 : 0.3));
  }
  for (const NamedBuffer& named : named_buffers(network)) {
    const bool variance = named.buffer->name == "running_var";
    named.buffer->value = random(named.buffer->value.shape(), named.path, variance ? 0.5 : -0.3, variance ? 2.0 : 0.3);
  }
}

void prune_channels(Module& network, double target, std::optional<Value> layers = {}, bool coupled = false) {
  PruneConfig config;
  config.pattern.coupled = coupled;
  config.pattern.pattern = "channel";
  config.sparsity.target = target;
  config.layers = std::move(layers);
  prune_to_target(config, network);
}

PassReport shrink(std::unique_ptr<Module>& root, const Shape& input) {
  ShrinkPass pass(ShrinkConfig{.keep = "always", .keep_for = {}});
  return run_pass(root, pass, input);
}

Tensor answer(Module& network, const Tensor& x, bool training = false) {
  const NoGrad no_grad;
  const StepState step{Device()};
  return network(Var(x), Context{.training = training, .seed = 0, .step = &step}).value();
}

std::unique_ptr<Module> copy_of(const Module& network) {
  const ChannelFlow flow = channel_flow(network);
  return narrowed(network, flow, std::vector<std::vector<bool>>(flow.groups.size()));
}

const LayerReport& row_of(const PassReport& report, std::string_view path) {
  const auto found = std::ranges::find(report.layers, path, &LayerReport::path);
  EXPECT_NE(found, report.layers.end()) << path;
  return *found;
}

// Shrinks a masked network. In evaluation and in training its outputs stay the same, it can be rebuilt from its tree, and it
// costs less.
PassReport expect_same_answers(std::unique_ptr<Module>& network, const Shape& input) {
  const Tensor x = random(input, "x", -1, 1);
  const Tensor before = answer(*network, x);
  const std::unique_ptr<Module> masked = copy_of(*network);
  const PassReport report = shrink(network, input);
  EXPECT_LE(relative_error(answer(*network, x), before), 1e-5);
  EXPECT_LT(report.after.parameters, report.before.parameters);
  EXPECT_LT(report.after.macs, report.before.macs);
  EXPECT_EQ(report.after.parameters, total_cost(*rebuild(describe(*network), builtin_layers()), input).parameters);
  EXPECT_LE(relative_error(answer(*network, x, true), answer(*masked, x, true)), 1e-3)
      << "batch statistics, of as little as two pixels";
  return report;
}

const Shape kImages{3, 12, 12, 3};

// conv1 (bias), relu, conv2, bn2, relu, pool, conv3, bn3, gelu, flatten, fc1, relu, fc2.
std::unique_ptr<Module> convolutions() {
  auto root = std::make_unique<Sequential>();
  root->add_child("conv1", std::make_unique<Conv2d>(Conv2dConfig{.in = 3, .out = 8, .padding = {1, 1}}));
  root->add_child("relu1", std::make_unique<Relu>());
  root->add_child("conv2", std::make_unique<Conv2d>(Conv2dConfig{.in = 8, .out = 10, .padding = {1, 1}, .bias = false}));
  root->add_child("bn2", std::make_unique<BatchNorm>(BatchNormConfig{.channels = 10}));
  root->add_child("relu2", std::make_unique<Relu>());
  root->add_child("pool", std::make_unique<MaxPool2d>(Pool2dConfig{}));
  root->add_child("conv3", std::make_unique<Conv2d>(Conv2dConfig{.in = 10, .out = 6, .padding = {1, 1}}));
  root->add_child("bn3", std::make_unique<BatchNorm>(BatchNormConfig{.channels = 6}));
  root->add_child("gelu", std::make_unique<Gelu>());
  root->add_child("flatten", std::make_unique<Flatten>());
  root->add_child("fc1", std::make_unique<Linear>(LinearConfig{.in = 216, .out = 12}));
  root->add_child("relu3", std::make_unique<Relu>());
  root->add_child("fc2", std::make_unique<Linear>(LinearConfig{.in = 12, .out = 5}));
  randomise(*root);
  return root;
}

TEST(Shrink, ASequenceLosesItsMaskedChannels) {
  auto root = convolutions();
  prune_channels(*root, 0.5, "*");
  // The classes are outputs too. They stay even if masked.
  const PassReport report = expect_same_answers(root, kImages);
  EXPECT_EQ(report.after.parameters, (27 * 4 + 4) + (36 * 5 + 2 * 5) + (45 * 3 + 3 + 2 * 3) + (36 * 3 * 6 + 6) + (6 * 5 + 5));
  EXPECT_EQ(to_string(*row_of(report, "conv2").ranks), "in 4 out 5");
  EXPECT_EQ(to_string(*row_of(report, "fc1").ranks), "in 108 out 6");
  EXPECT_EQ(row_of(report, "fc1").decision, "shrunk");
  EXPECT_EQ(row_of(report, "fc2").reason, "3 masked outputs stay, for these channels are the network's output");
  EXPECT_FALSE(root->child("conv1").parameter("weight").mask().defined());
  EXPECT_FALSE(root->child("bn2").parameter("bias").mask().defined());
}

TEST(Shrink, OtherMasksGoAlong) {
  auto root = convolutions();
  Parameter& weight = root->child("conv3").parameter("weight");
  const Tensor mask = Tensor::full(weight.value().shape(), 1, DType::u8);
  mask.data<std::uint8_t>()[0] = 0;
  weight.set_mask(mask);
  root->child("conv3").parameter("bias").set_trainable(false);
  prune_channels(*root, 0.5, "conv1");
  prune_channels(*root, 0.3, "conv2");
  expect_same_answers(root, kImages);
  EXPECT_TRUE(root->child("conv3").parameter("weight").mask().defined());
  EXPECT_FALSE(root->child("conv3").parameter("bias").trainable());
}

TEST(Shrink, NamedNetworksAnswerTheSame) {
  const Shape input{2, 32, 32, 3};
  for (const ModelConfig& config : {named_model("resnet8"), named_model("resnet20"),
                                    ModelConfig{.form = models::CifarResNet{.name = "resnet8", .shortcut = "projection"}},
                                    ModelConfig{.form = models::MobileNetV1{.width = 0.25}}, named_model("resnet18")}) {
    SCOPED_TRACE(to_json(write(config)));
    auto root = build_model(config, input);
    randomise(*root);
    prune_channels(*root, 0.5);
    expect_same_answers(root, input);
  }
}

TEST(Shrink, AStreamKeepsItsChannelsBehindAPaddedShortcut) {
  auto root = build_model(named_model("resnet8"), {2, 32, 32, 3});
  randomise(*root);
  prune_channels(*root, 0.5);
  const PassReport report = expect_same_answers(root, {2, 32, 32, 3});
  EXPECT_EQ(to_string(*row_of(report, "layer2.0.conv1").ranks), "in 16 out 16");
  const LayerReport& second = row_of(report, "layer2.0.conv2");
  EXPECT_EQ(to_string(*second.ranks), "in 16 out 32");
  EXPECT_NE(second.reason.find("16 masked outputs stay, for these channels are padded by the option_a shortcut of 'layer"),
            std::string::npos)
      << second.reason;
}

// Two convolutions whose outputs of 6 channels are added, and the layer that reads the sum.
std::unique_ptr<Module> sum_of_two(const Shape& input) {
  auto root = std::make_unique<Sequential>();
  root->add_child("block", make_basic_block({.in = 3, .out = 6, .stride = 2, .shortcut = "projection"}));
  root->add_child("next", make_basic_block({.in = 6, .out = 6}));
  root->add_child("pool", std::make_unique<GlobalAvgPool>());
  root->add_child("fc", std::make_unique<Linear>(LinearConfig{.in = 6, .out = 5}));
  randomise(*root);
  EXPECT_EQ(root->output_shape(input), (Shape{input[0], 5}));
  return root;
}

void mask_outputs(Module& root, const std::string& conv, const std::string& norm, std::int64_t outputs) {
  for (const std::string& path : {conv + ".weight", norm + ".weight", norm + ".bias"}) {
    const auto all = named_parameters(root);
    Parameter& parameter = *std::ranges::find(all, path, &NamedParameter::path)->parameter;
    const Tensor mask = Tensor::full(parameter.value().shape(), 1, DType::u8);
    mask.slice(0, 0, outputs).fill(0);
    parameter.set_mask(mask);
  }
}

TEST(Shrink, AChannelOfASumGoesWhereEveryTermIsZero) {
  auto root = sum_of_two(kImages);
  mask_outputs(*root, "block.conv2", "block.bn2", 3);
  mask_outputs(*root, "block.downsample.0", "block.downsample.1", 4);
  const PassReport none = shrink(root, kImages);
  EXPECT_EQ(none.after.parameters, none.before.parameters) << "the next block's own term has all of them";
  mask_outputs(*root, "next.conv2", "next.bn2", 2);
  const PassReport report = expect_same_answers(root, kImages);
  EXPECT_EQ(to_string(*row_of(report, "fc").ranks), "in 4 out 5");
  EXPECT_EQ(row_of(report, "block.conv2").reason,
            "1 masked outputs stay, for these channels are not zero where they are read, behind a sum or a norm");
  EXPECT_EQ(root->child("next").config().at("in").as_int(), 4);
  EXPECT_EQ(root->child("block").config().at("out").as_int(), 4);
}

// Channels that a depthwise convolution drops need not be computed before it.
TEST(Shrink, DepthwiseConvolutionsTakeTheirChannelsAlong) {
  const Shape input{4, 64, 64, 3};  // at least 16 pixels for the statistics of each batch norm
  auto root = build_model({.form = models::MobileNetV1{.width = 0.25}}, input);
  randomise(*root);
  prune_channels(*root, 0.5, "layer3.depthwise");
  const PassReport report = expect_same_answers(root, input);
  EXPECT_EQ(to_string(*row_of(report, "layer2.pointwise").ranks), "in 16 out 16");
  EXPECT_EQ(to_string(*row_of(report, "layer3.depthwise").ranks), "in 16 out 16");
  EXPECT_EQ(to_string(*row_of(report, "layer3.pointwise").ranks), "in 16 out 32");
}

// Coupled pruning removes half of all channels. What remains has the sizes of a network of half the width.
TEST(Shrink, CoupledLayersLoseTheSameChannels) {
  const Shape input{2, 32, 32, 3};
  for (ModelConfig config : {ModelConfig{.form = models::CifarResNet{.name = "resnet20", .shortcut = "projection"}},
                             ModelConfig{.form = models::MobileNetV1{.width = 0.5}}}) {
    SCOPED_TRACE(config.name());
    auto root = build_model(config, input);
    randomise(*root);
    prune_channels(*root, 0.5, Value("re:(?!fc).*"), true);
    const PassReport report = expect_same_answers(root, input);
    auto* const resnet = std::get_if<models::CifarResNet>(&config.form);
    std::optional<double>& width = resnet != nullptr ? resnet->width : std::get<models::MobileNetV1>(config.form).width;
    width = width.value_or(1) / 2;
    const Cost narrow = total_cost(*build_model(config, input), input);
    EXPECT_EQ(report.after.parameters, narrow.parameters);
    EXPECT_EQ(report.after.macs, narrow.macs);
  }
}

TEST(Shrink, AConstantBehindANormKeepsItsChannel) {
  auto root = convolutions();
  prune_channels(*root, 0.5, "conv2");
  root->child("bn2").parameter("bias").set_mask({});
  const PassReport report = shrink(root, kImages);
  EXPECT_EQ(report.after.parameters, report.before.parameters);
  ASSERT_EQ(report.layers.size(), 1u);
  EXPECT_TRUE(report.layers[0].stays_dense());
  EXPECT_EQ(report.layers[0].reason,
            "5 masked outputs stay, for these channels are not zero where they are read, behind a sum or a norm");
}

TEST(Shrink, SigmoidsAndUnknownLayersKeepChannels) {
  auto root = convolutions();
  root->replace_child("relu1", std::make_unique<Sigmoid>());
  root->replace_child("relu2", std::make_unique<Residual>(ResidualConfig{}));
  root->child("relu2").add_child("body", std::make_unique<Tanh>());
  prune_channels(*root, 0.5, "conv*");
  const PassReport report = expect_same_answers(root, kImages);
  EXPECT_TRUE(row_of(report, "conv1").stays_dense());
  EXPECT_EQ(to_string(*row_of(report, "conv2").ranks), "in 8 out 5");
}

TEST(Shrink, WithoutMaskedOutputsItIsRefused) {
  auto root = convolutions();
  const std::string refused = message_of<ConfigError>([&] { shrink(root, kImages); });
  EXPECT_NE(refused.find("no layer has an output that is masked"), std::string::npos) << refused;
}

}  // namespace
}  // namespace tessera::testing
