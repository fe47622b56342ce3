// Factored convolutions with batch norms between their filters (layers/factored_conv2d.h).
#include <gtest/gtest.h>

#include "core/autograd/backward.h"
#include "core/config/read.h"
#include "core/linalg/relative_error.h"
#include "core/ops/batch_norm.h"
#include "core/support/error.h"
#include "layers/batch_norm.h"
#include "layers/builtin.h"
#include "layers/fold.h"
#include "layers/model_tree.h"
#include "layers/sequential.h"
#include "tests/core/linalg/linalg_support.h"
#include "tests/layers/factored_forms.h"
#include "tests/support/gradient_check.h"
#include "tests/support/message_of.h"

namespace tessera::testing {
namespace {

constexpr Context kTraining{.training = true};
const Conv2dConfig kConv{.in = 6, .out = 5, .stride = {2, 1}, .padding = {1, 2}, .dilation = {1, 2}};
const Shape kInput{3, 7, 9, 6};

Conv2dConfig without_bias(Conv2dConfig conv) {
  conv.bias = false;
  return conv;
}

// Images with a mean away from zero, so that the norms have something to subtract.
Tensor images(std::uint64_t seed) {
  Tensor x = random_tensor(kInput, DType::f32, seed);
  for (std::int64_t i = 0; i < x.numel(); ++i) x.data<float>()[i] += 0.7f;
  return x;
}

// Makes every parameter random, with scales of norms around 1.
void randomise(Module& module) {
  initialize(module, 3);
  std::uint64_t seed = 10;
  for (const NamedParameter& named : named_parameters(module)) {
    if (named.parameter->role() == ParameterRole::weight) continue;
    Tensor value = random_tensor(named.parameter->value().shape(), DType::f32, seed++);
    const bool scale = named.parameter->name() == "weight";
    for (std::int64_t i = 0; scale && i < value.numel(); ++i) value.data<float>()[i] = 1 + 0.2f * value.data<float>()[i];
    named.parameter->set_value(value);
  }
}

// Randomises the parameters and gives the norms the statistics of a few training steps.
void train_some(Module& module) {
  randomise(module);
  const NoGrad no_grad;
  for (std::uint64_t step = 0; step < 5; ++step) module.forward(Var(images(20 + step)), kTraining);
}

Tensor answer(Module& module, const Tensor& x) {
  const NoGrad no_grad;
  return module.forward(Var(x), {}).value();
}

class NormedFactoredConv : public ::testing::TestWithParam<FactoredForm> {};

// The ops that the layer should run. operands: x, the filters, weight and bias of each norm, then the bias if there is one.
Var by_ops(std::span<const Var> operands, const FactoredConv2d& layer) {
  const std::size_t count = layer.filters().size();
  Var y = operands[0];
  for (std::size_t i = 0; i < count; ++i) {
    const bool last = i + 1 == count;
    const bool biased = last && operands.size() > 3 * count - 1;
    y = conv2d(y, operands[1 + i], biased ? operands.back() : Var(), layer.filters()[i].options);
    if (last) break;
    const Shape channels{y.shape().dim(-1)};
    const Tensor mean = Tensor::zeros(channels, y.dtype()), variance = Tensor::full(channels, 1, y.dtype());
    y = batch_norm(y, operands[1 + count + 2 * i], operands[2 + count + 2 * i], mean, variance, {.training = true});
  }
  return y;
}

std::vector<Parameter*> parameters_of(FactoredConv2d& layer) {
  std::vector<Parameter*> all;
  for (const FactoredConv2d::Filter& filter : layer.filters()) all.push_back(filter.parameter);
  for (const Module::Child& norm : layer.children()) {
    all.push_back(&norm.module->parameter("weight"));
    all.push_back(&norm.module->parameter("bias"));
  }
  all.push_back(&layer.parameter("bias"));
  return all;
}

double largest(const Tensor& tensor) { return largest_difference(tensor, Tensor::zeros(tensor.shape())); }

// Ops in double are the reference: differences check their gradients, and the layer's must equal theirs. Bounds are not relative
// to each gradient, because some are 0: those of a shift that the next norm subtracts, and of a scale that it divides out.
TEST_P(NormedFactoredConv, GradientsInTrainingAreThoseOfItsOpsInDouble) {
  const auto layer = GetParam().make(kConv, 3, true);
  randomise(*layer);
  const auto parameters = parameters_of(*layer);
  std::vector<Tensor> inputs{images(1).to(DType::f64)};
  for (const Parameter* parameter : parameters) inputs.push_back(parameter->value().to(DType::f64));
  EXPECT_EQ(check_gradients([&](std::span<const Var> operands) { return by_ops(operands, *layer); }, inputs), "");

  std::vector<Var> exact;
  for (const Tensor& input : inputs) exact.emplace_back(input, true);
  const Var expected = by_ops(exact, *layer);
  const Var x(images(1), true);
  const Var y = layer->forward(x, kTraining);
  EXPECT_LT(linalg::relative_error(y.value(), expected.value()), 1e-5);
  const Tensor grad_y = random_tensor(y.shape(), DType::f32, 4);
  backward(y, grad_y);
  backward(expected, grad_y.to(DType::f64));
  EXPECT_LT(linalg::relative_error(x.grad(), exact[0].grad()), 1e-4);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const Tensor& wanted = exact[i + 1].grad();
    EXPECT_LT(largest_difference(parameters[i]->grad(), wanted), 1e-4 * (1 + largest(wanted))) << parameters[i]->name();
  }
}

// Padding before a later filter would put zeros where the norms put their shift.
TEST_P(NormedFactoredConv, InEvaluationItIsOneDenseConvolutionWithABias) {
  for (const Conv2dConfig& conv : {kConv, without_bias(kConv)}) {
    const auto layer = GetParam().make(conv, 3, true);
    train_some(*layer);
    const Tensor x = images(30);
    const Tensor expected = answer(*layer, x);
    const auto dense = layer->to_dense();
    EXPECT_EQ(dense->kind(), "conv2d");
    EXPECT_EQ(dense->config().at("bias"), Value(true));
    EXPECT_LT(largest_difference(answer(*dense, x), expected), 1e-4) << "bias " << conv.bias;
    EXPECT_LT(linalg::relative_error(layer->dense_weight(), dense->parameter("weight").value()), 1e-12);
    EXPECT_EQ(dense->output_shape(kInput), layer->output_shape(kInput));
  }
}

TEST_P(NormedFactoredConv, FoldedItHasNoNormsAndABias) {
  for (const Conv2dConfig& conv : {kConv, without_bias(kConv)}) {
    const auto layer = GetParam().make(conv, 3, true);
    train_some(*layer);
    const Tensor x = images(31);
    const auto alone = for_inference(*layer);
    EXPECT_EQ(alone->kind(), layer->kind());
    EXPECT_EQ(alone->config().find("batch_norm"), nullptr);
    EXPECT_EQ(alone->config().at("bias"), Value(true));
    EXPECT_TRUE(alone->children().empty());
    EXPECT_LT(largest_difference(answer(*alone, x), answer(*layer, x)), 1e-4) << "bias " << conv.bias;
    EXPECT_EQ(alone->output_shape(kInput), layer->output_shape(kInput));
  }
}

TEST_P(NormedFactoredConv, FoldsWithANormBehindIt) {
  Sequential network;
  network.add_child("conv", GetParam().make(without_bias(kConv), 3, true));
  network.add_child("bn", std::make_unique<BatchNorm>(BatchNormConfig{.channels = 5}));
  train_some(network);
  const Tensor x = images(32);
  const auto copy = for_inference(network);
  EXPECT_EQ(copy->child("bn").kind(), "identity");
  EXPECT_TRUE(copy->child("conv").children().empty());
  EXPECT_LT(largest_difference(answer(*copy, x), answer(network, x)), 1e-4);
}

TEST_P(NormedFactoredConv, StatisticsMoveInTrainingAlone) {
  const auto layer = GetParam().make(kConv, 3, true);
  randomise(*layer);
  const auto state = [&] {
    std::vector<std::vector<float>> all;
    for (const NamedBuffer& buffer : named_buffers(*layer)) all.push_back(buffer.buffer->value.to_vector<float>());
    return all;
  };
  const auto fresh = state();
  ASSERT_EQ(fresh.size(), 2 * (layer->filters().size() - 1));
  answer(*layer, images(1));
  EXPECT_EQ(state(), fresh);
  layer->forward(Var(images(1)), kTraining);
  const auto moved = state();
  for (std::size_t i = 0; i < fresh.size(); ++i) EXPECT_NE(moved[i], fresh[i]) << i;
}

// One row for the layer as a whole counts the convolutions that run. Only the first one's image is padded.
TEST_P(NormedFactoredConv, CostsAreThoseOfWhatRuns) {
  const auto layer = GetParam().make(kConv, 3, true);
  Trace trace;
  layer->output_shape(kInput, &trace);
  ASSERT_EQ(trace.size(), 1u);
  std::int64_t parameters = 5, channels = 0, macs = 0;
  Shape shape = kInput;
  for (std::size_t i = 0; i < layer->filters().size(); ++i) {
    const FactoredConv2d::Filter& filter = layer->filters()[i];
    EXPECT_EQ(filter.options.padding, i == 0 ? kConv.padding : (Extent{0, 0}));
    const Tensor& value = filter.parameter->value();
    shape = conv2d_output_shape(shape, value.shape(), filter.options);
    macs += shape[1] * shape[2] * value.numel();
    parameters += value.numel();
    if (i + 1 < layer->filters().size()) channels += value.dim(0);
  }
  EXPECT_EQ(trace[0].macs, macs);
  EXPECT_EQ(trace[0].parameters, parameters + 2 * channels);
  EXPECT_EQ(trace[0].weight_bytes, 4 * (parameters + 4 * channels));
  EXPECT_EQ(trace[0].output, shape);
}

TEST_P(NormedFactoredConv, IsRebuiltFromItsTree) {
  const auto layer = GetParam().make(kConv, 3, true);
  const Value tree = describe(*layer);
  EXPECT_EQ(layer->config().at("batch_norm"), Value(true));
  EXPECT_EQ(describe(*rebuild(parse_json(to_json(tree), "test"), builtin_layers())), tree);
  // Recorded choices name layers by their config.
  EXPECT_EQ(GetParam().make(kConv, 3)->config().find("batch_norm"), nullptr);
}

TEST_P(NormedFactoredConv, CannotBeRecomputed) {
  const auto layer = GetParam().make(kConv, 3, true);
  EXPECT_EQ(message_of<ConfigError>([&] { layer->forward(Var(images(1)), {.training = true, .recompute = true}); }),
            str(layer->kind(),
                " '' has batch norms between its filters, whose running statistics another forward would move again; "
                "set batch_norm or recompute to false"));
  EXPECT_EQ(GetParam().make(kConv, 3)->why_not_recompute(), "");
}

INSTANTIATE_TEST_SUITE_P(Forms, NormedFactoredConv, ::testing::ValuesIn(kFactoredForms),
                         [](const auto& form) { return form.param.name; });

TEST(NormedFactoredConvCounts, OfOneLayerByHand) {
  const Tucker2Conv2d layer({.conv = kConv, .rank_in = 4, .rank_out = 3, .batch_norm = true});
  Trace trace;
  layer.output_shape({1, 7, 9, 6}, &trace);
  // in_factor 4 x 6, core 3 x 3x3 x 4, out_factor 5 x 3, the bias; weight and bias of norms of 4 and 3 channels.
  EXPECT_EQ(trace.at(0).parameters, 24 + 108 + 15 + 5 + 2 * (4 + 3));
  // in_factor runs on 9 x 13 pixels, including the padding; the others run on 4 x 9.
  EXPECT_EQ(trace.at(0).macs, 117 * 24 + 36 * (108 + 15));
}

TEST(NormedFactoredConvNames, AreThoseOfAChainInPyTorch) {
  const SvdConv2d layer({.conv = {.in = 4, .out = 3, .kernel = {1, 1}}, .rank = 2, .batch_norm = true});
  std::string names;
  for (const TorchPart& part : layer.torch_tensors()) names += str(part.tensor, "=", part.name, " ");
  EXPECT_EQ(names,
            "in_factor=0.weight out_factor=2.weight bias=2.bias norm0.weight=1.weight norm0.bias=1.bias "
            "norm0.running_mean=1.running_mean norm0.running_var=1.running_var ");
}

TEST(NormedFactoredConvConfigs, OneFilterHasNothingBetween) {
  constexpr const char* kAlone = R"({"in": 4, "out": 2, "rank_in": 4, "rank_out": 2, "in_factor": false, "out_factor": false,
                                     "batch_norm": true})";
  EXPECT_EQ(message_of<ConfigError>([&] { read<Tucker2Conv2dConfig>(parse_json(kAlone, "test")); }),
            "test: batch_norm: stands between filters; needs in_factor or out_factor");
  EXPECT_EQ(message_of<ConfigError>([] {
              Tucker2Conv2d({.conv = {.in = 4, .out = 2},
                             .rank_in = 4,
                             .rank_out = 2,
                             .in_factor = false,
                             .out_factor = false,
                             .batch_norm = true});
            }),
            "tucker2_conv2d: batch_norm stands between filters; needs in_factor or out_factor");
}

}  // namespace
}  // namespace tessera::testing
