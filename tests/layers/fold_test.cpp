// Networks with folded batch norm answer in evaluation what the originals answer: single norms, and whole networks.
#include "layers/fold.h"

#include <gtest/gtest.h>

#include "core/ops/batch_norm.h"
#include "core/ops/conv2d.h"
#include "core/rng.h"
#include "layers/activation.h"
#include "layers/batch_norm.h"
#include "layers/builtin.h"
#include "layers/linear.h"
#include "layers/model_tree.h"
#include "layers/models/model.h"
#include "layers/residual.h"
#include "layers/sequential.h"
#include "layers/tt_garipov_conv2d.h"
#include "layers/tucker2_conv2d.h"
#include "tests/support/message_of.h"
#include "tests/support/relative_error.h"

namespace tessera {
namespace {

Tensor random_tensor(const Shape& shape, std::string_view purpose, double low, double high) {
  const Tensor x = Tensor::empty(shape);
  fill_uniform(x, RngStream(5, "fold_test", purpose), low, high);
  return x;
}

// Values as after training: statistics and affine maps away from their initial ones, biases away from zero.
void randomise(Module& network) {
  initialize(network, 11);
  for (const NamedParameter& named : named_parameters(network)) {
    if (named.parameter->role() == ParameterRole::weight) continue;
    const bool scale = named.parameter->name() == "weight";
    named.parameter->set_value(
        random_tensor(named.parameter->value().shape(), named.path, scale ? 0.5 : -0.3, scale ? 1.5 : 0.3));
  }
  for (const NamedBuffer& named : named_buffers(network)) {
    const bool variance = named.buffer->name == "running_var";
    named.buffer->value = random_tensor(named.buffer->value.shape(), named.path, variance ? 0.5 : -0.3, variance ? 2.0 : 0.3);
  }
}

Tensor answer(Module& network, const Tensor& x) {
  const NoGrad no_grad;
  return network(Var(x), Context{}).value();
}

std::size_t count_of(Module& network, std::string_view kind) {
  std::size_t count = 0;
  for_each_module(network, [&](Module& module) { count += module.kind() == kind ? 1 : 0; });
  return count;
}

class FoldedModel : public testing::TestWithParam<ModelConfig> {};

TEST_P(FoldedModel, AnswersWhatTheOriginalAnswers) {
  const Shape input{2, 32, 32, 3};
  const auto network = build_model(GetParam(), input);
  randomise(*network);
  const Tensor x = random_tensor(input, "x", -1, 1);
  const Tensor want = answer(*network, x);
  const Value before = describe(*network);
  const auto fast = folded(*network, builtin_layers());
  // Weights are rounded once more, and sums run in another order. Neither error grows over the layers.
  EXPECT_LE(relative_error(answer(*fast, x), want), 1e-5);
  EXPECT_LE(relative_error((*fast)(Var(x), Context{}).value(), want), 1e-5) << "recorded";
  EXPECT_EQ(count_of(*fast, "batch_norm"), 0u);
  EXPECT_EQ(count_of(*fast, "identity"), count_of(*network, "batch_norm"));
  EXPECT_EQ(answer(*network, x).to_vector<float>(), want.to_vector<float>());
  EXPECT_EQ(describe(*network), before);
  EXPECT_EQ(fast->output_shape(input), network->output_shape(input));
  EXPECT_EQ(describe(*rebuild(describe(*fast), builtin_layers())), describe(*fast));
}

INSTANTIATE_TEST_SUITE_P(Named, FoldedModel,
                         testing::Values(named_model("mlp"), named_model("lenet5"), named_model("resnet8"),
                                         named_model("resnet56"),
                                         ModelConfig{.form = models::CifarResNet{.name = "resnet20", .shortcut = "projection"}},
                                         named_model("resnet18"), named_model("resnet50"), named_model("vgg16"),
                                         named_model("mobilenet_v1")),
                         [](const auto& test) { return str(test.param.name(), test.index); });

TEST(Fold, FactoredNetworksAnswerWhatTheyDid) {
  const Shape input{2, 16, 16, 3};
  auto network = build_model(named_model("resnet8"), input);
  randomise(*network);
  // Ranks below both sizes, and full in one mode or in both: the last factor differs each time.
  const std::pair<const char*, Tucker2Ranks> layers[]{{"layer1.0.conv1", {.out = 5, .in = 7}},
                                                      {"layer1.0.conv2", {.out = 16, .in = 7}},
                                                      {"layer2.0.conv1", {.out = 9, .in = 16}},
                                                      {"layer2.0.conv2", {.out = 32, .in = 32}}};
  for (const auto& [path, ranks] : layers) {
    const auto& dense = dynamic_cast<const Conv2d&>(find_module(*network, path));
    replace_module(network, path, Tucker2Conv2d::from_dense(dense, ranks));
  }
  const Tensor x = random_tensor(input, "x", -1, 1);
  const auto fast = folded(*network, builtin_layers());
  EXPECT_LE(relative_error(answer(*fast, x), answer(*network, x)), 1e-5);
  EXPECT_EQ(count_of(*fast, "tucker2_conv2d"), 4u);
  EXPECT_EQ(count_of(*fast, "batch_norm"), 0u);
}

// Like layers with sparse factors: the norm after the chain is folded into its last convolution, whose ReLU is in the same op.
TEST(Fold, ChainsInTheConvolutionsPlacesAnswerWhatTheyDid) {
  const Shape input{2, 16, 16, 3};
  auto network = build_model(named_model("resnet8"), input);
  const auto chain = [&](std::int64_t in, std::int64_t out, std::int64_t stride, bool norm) {
    auto parts = std::make_unique<Sequential>();
    parts->add_child("0",
                     std::make_unique<Conv2d>(Conv2dConfig{
                         .in = in, .out = 5, .kernel = {3, 3}, .stride = {stride, stride}, .padding = {1, 1}, .bias = false}));
    if (norm) parts->add_child("1", std::make_unique<BatchNorm>(BatchNormConfig{.channels = 5}));
    parts->add_child(norm ? "2" : "1",
                     std::make_unique<Conv2d>(Conv2dConfig{.in = 5, .out = out, .kernel = {1, 1}, .bias = !norm}));
    return parts;
  };
  replace_module(network, "layer1.0.conv1", chain(16, 16, 1, false));
  replace_module(network, "layer1.0.conv2", chain(16, 16, 1, true));
  replace_module(network, "layer2.0.conv1", chain(16, 32, 2, true));
  randomise(*network);
  const Tensor x = random_tensor(input, "x", -1, 1);
  const auto fast = folded(*network, builtin_layers());
  EXPECT_LE(relative_error(answer(*fast, x), answer(*network, x)), 1e-5);
  EXPECT_LE(relative_error((*fast)(Var(x), Context{}).value(), answer(*network, x)), 1e-5) << "recorded";
  EXPECT_EQ(count_of(*fast, "batch_norm"), 0u);
}

TEST(Fold, EqualsTheFormulaInDouble) {
  for (const bool bias : {false, true}) {
    Sequential pair;
    const auto& conv = dynamic_cast<const Conv2d&>(
        pair.add_child("conv", std::make_unique<Conv2d>(Conv2dConfig{
                                   .in = 6, .out = 9, .stride = {2, 1}, .padding = {1, 0}, .groups = 3, .bias = bias})));
    const auto& norm =
        dynamic_cast<const BatchNorm&>(pair.add_child("norm", std::make_unique<BatchNorm>(BatchNormConfig{.channels = 9})));
    randomise(pair);
    const Tensor x = random_tensor({2, 7, 5, 6}, "x", -1, 1);
    const auto exact = [](const Tensor& value) { return value.to(DType::f64); };
    const Var y = conv2d(Var(exact(x)), Var(exact(conv.weight().value())), bias ? Var(exact(conv.bias()->value())) : Var(),
                         {.stride = {2, 1}, .padding = {1, 0}, .groups = 3});
    const Var want = batch_norm(y, Var(exact(norm.parameter("weight").value())), Var(exact(norm.parameter("bias").value())),
                                exact(norm.buffers()[0]->value), exact(norm.buffers()[1]->value), {.training = false});
    EXPECT_LE(relative_error(answer(*folded(pair, builtin_layers()), x), want.value()), 1e-6) << "bias " << bias;
  }
}

TEST(Fold, LeavesNormsThatFollowNoConvolution) {
  Sequential chain;
  chain.add_child("first", std::make_unique<BatchNorm>(BatchNormConfig{.channels = 3}));
  chain.add_child("conv", std::make_unique<Conv2d>(Conv2dConfig{.in = 3, .out = 3, .padding = {1, 1}}));
  chain.add_child("relu", std::make_unique<Relu>());
  chain.add_child("between", std::make_unique<BatchNorm>(BatchNormConfig{.channels = 3}));
  auto branches = std::make_unique<Residual>(ResidualConfig{});  // parallel branches, not layers in sequence
  branches->add_child("body", std::make_unique<Conv2d>(Conv2dConfig{.in = 3, .out = 3, .padding = {1, 1}}));
  branches->add_child("shortcut", std::make_unique<BatchNorm>(BatchNormConfig{.channels = 3}));
  chain.add_child("branches", std::move(branches));
  chain.add_child("fc", std::make_unique<Linear>(LinearConfig{.in = 3, .out = 3}));
  chain.add_child("last", std::make_unique<BatchNorm>(BatchNormConfig{.channels = 3}));
  randomise(chain);
  const Tensor x = random_tensor({2, 5, 5, 3}, "x", -1, 1);
  const auto fast = folded(chain, builtin_layers());
  EXPECT_EQ(describe(*fast), describe(chain));
  EXPECT_EQ(answer(*fast, x).to_vector<float>(), answer(chain, x).to_vector<float>());
}

TEST(Fold, KeepsTheNormThatWouldMakeACompressedConvolutionDense) {
  Sequential network;
  network.add_child("trains", std::make_unique<TtGaripovConv2d>(TtGaripovConv2dConfig{.conv = {.in = 4, .out = 4}}));
  network.add_child("bn1", std::make_unique<BatchNorm>(BatchNormConfig{.channels = 4}));
  network.add_child("dense", std::make_unique<Conv2d>(Conv2dConfig{.in = 4, .out = 4}));
  network.add_child("bn2", std::make_unique<BatchNorm>(BatchNormConfig{.channels = 4}));
  randomise(network);
  const Tensor x = random_tensor({2, 7, 7, 4}, "x", -1, 1);
  const auto all = folded(network, builtin_layers());
  EXPECT_EQ(count_of(*all, "batch_norm"), 0u);
  EXPECT_EQ(count_of(*all, "tt_garipov_conv2d"), 0u);
  const auto kept = folded(network, builtin_layers(), Folds::keeping_compressed);
  EXPECT_EQ(count_of(*kept, "batch_norm"), 1u);
  EXPECT_EQ(kept->child("bn1").kind(), "batch_norm");
  EXPECT_EQ(count_of(*kept, "tt_garipov_conv2d"), 1u);
  for (Module* const copy : {all.get(), kept.get()}) {
    EXPECT_LE(relative_error(answer(*copy, x), answer(network, x)), 1e-5);
  }
}

TEST(Fold, RefusesNumbersThatARectifierMightHide) {
  const auto network = build_model(named_model("resnet8"), {1, 32, 32, 3});
  randomise(*network);
  find_module(*network, "layer2.0.bn1").buffers()[1]->value.fill(std::numeric_limits<double>::quiet_NaN());
  EXPECT_EQ(message_of<NumericError>([&] { folded(*network, builtin_layers()); }),
            "fold: 'layer2.0.bn1.running_var' contains NaN or Inf");
}

}  // namespace
}  // namespace tessera
