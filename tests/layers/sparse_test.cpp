// Compares sparse layers with the dense layer that has the masked weight.
#include <gtest/gtest.h>

#include "core/autograd/backward.h"
#include "core/config/read.h"
#include "core/mask_bits.h"
#include "core/support/error.h"
#include "layers/batch_norm.h"
#include "layers/builtin.h"
#include "layers/fold.h"
#include "layers/model_tree.h"
#include "layers/sequential.h"
#include "layers/sparse_conv2d.h"
#include "layers/sparse_linear.h"
#include "layers/weight_count.h"
#include "tests/core/linalg/linalg_support.h"
#include "tests/layers/sparse_reference.h"
#include "tests/support/message_of.h"
#include "tests/support/relative_error.h"

namespace tessera::testing {
namespace {

constexpr double kTolerance = 1e-5;

Tensor mask_like(const Tensor& weight, std::int64_t every) {
  const Tensor mask = Tensor::zeros(weight.shape(), DType::u8);
  for (std::int64_t i = 0; i < mask.numel(); ++i) mask.data<std::uint8_t>()[i] = i * 7 % every == 0 ? 1 : 0;
  return mask;
}

template <class Layer, class Config>
std::unique_ptr<Layer> masked(const Config& config, std::int64_t every) {
  auto dense = std::make_unique<Layer>(config);
  dense->reset_parameters(3);
  dense->weight().set_mask(mask_like(dense->weight().value(), every));
  if (dense->bias() != nullptr) dense->bias()->set_value(random_tensor(dense->bias()->value().shape(), DType::f32, 5));
  return dense;
}

std::unique_ptr<Conv2d> masked_conv(bool bias = true) {
  return masked<Conv2d>(Conv2dConfig{.in = 6, .out = 10, .stride = {2, 1}, .padding = {1, 1}, .bias = bias}, 5);
}
std::unique_ptr<Linear> masked_linear() { return masked<Linear>(LinearConfig{.in = 13, .out = 9}, 4); }

TEST(SparseLayers, TellHowManyRowsShareTheirColumns) {
  const auto structure = [](std::int64_t together) {
    Linear dense(LinearConfig{.in = 16, .out = 8});
    const Tensor mask = Tensor::zeros({8, 16}, DType::u8);
    // Each group of rows keeps two columns that no other group keeps.
    for (std::int64_t i = 0; i < 128; ++i) mask.data<std::uint8_t>()[i] = i % 16 / 2 == i / 16 / together ? 1 : 0;
    dense.weight().set_mask(mask);
    return SparseLinear::of(dense)->structure();
  };
  EXPECT_EQ(structure(1), "1 rows together");
  EXPECT_EQ(structure(2), "2 rows together");
  EXPECT_EQ(structure(4), "4 rows together");
}

TEST(SparseLayers, EqualTheMaskedDenseLayer) {
  const auto linear = masked_linear();
  expect_same_layer(*SparseLinear::of(*linear), *linear, {6, 13});
  const auto conv = masked_conv();
  expect_same_layer(*SparseConv2d::of(*conv), *conv, {2, 7, 6, 6});
}

TEST(SparseLayers, GoBackToTheDenseLayerWithItsMask) {
  const auto conv = masked_conv();
  conv->weight().set_trainable(false);
  const std::unique_ptr<Module> back = SparseConv2d::of(*conv)->to_dense();
  EXPECT_EQ(to_json(back->config()), to_json(conv->config()));
  EXPECT_EQ(values(back->parameter("weight").value()), values(conv->weight().value()));
  EXPECT_EQ(back->parameter("weight").mask().to_vector<std::uint8_t>(), conv->weight().mask().to_vector<std::uint8_t>());
  EXPECT_EQ(values(back->parameter("bias").value()), values(conv->bias()->value()));
  EXPECT_FALSE(back->parameter("weight").trainable());
  const auto linear = masked_linear();
  EXPECT_EQ(values(SparseLinear::of(*linear)->dense_weight()), values(linear->weight().value()));
}

// A kept element stays, whatever its value: a weight that passes through 0 is trained on.
TEST(SparseLayers, KeepValuesThatBecomeZero) {
  const auto sparse = SparseLinear::of(*masked_linear());
  Parameter& parameter = sparse->parameter("values");
  const std::int64_t count = parameter.value().numel();
  parameter.value().data<float>()[3] = 0;
  const Var x(random_tensor({6, 13}, DType::f32, 7));
  const Var y = sparse->forward(x, {});
  backward(y, random_tensor(y.value().shape(), DType::f32, 8));
  EXPECT_NE(parameter.grad().to_vector<float>()[3], 0);
  const std::unique_ptr<Module> back = sparse->to_dense();
  EXPECT_EQ(values(SparseLinear::of(dynamic_cast<const Linear&>(*back))->parameter("values").value()), values(parameter.value()));
  EXPECT_EQ(parameter.value().numel(), count);
}

TEST(SparseLayers, AreRebuiltFromKindAndConfig) {
  const auto sparse = SparseConv2d::of(*masked_conv());
  const std::unique_ptr<Module> again = rebuild(describe(*sparse), builtin_layers());
  EXPECT_EQ(to_json(describe(*again)), to_json(describe(*sparse)));
  Trace trace;
  EXPECT_EQ(sparse->output_shape({2, 7, 6, 6}, &trace), (Shape{2, 4, 6, 10}));
  EXPECT_EQ(trace.at(0).macs, 108 * 24) << "kept elements at each output";
  EXPECT_EQ(trace.at(0).parameters, 108 + 10);
}

TEST(SparseLayers, FoldTheBatchNormBehindThem) {
  auto root = std::make_unique<Sequential>();
  root->add_child("conv", SparseConv2d::of(*masked_conv(false)));
  auto& norm = dynamic_cast<BatchNorm&>(root->add_child("norm", std::make_unique<BatchNorm>(BatchNormConfig{.channels = 10})));
  norm.parameter("weight").set_value(random_tensor({10}, DType::f32, 8));
  for (const auto& buffer : norm.buffers()) {
    if (buffer->name == "running_var") buffer->value.fill(1.7);
    if (buffer->name == "running_mean") buffer->value.copy_from(random_tensor({10}, DType::f32, 9));
  }
  const Var x(random_tensor({2, 7, 6, 6}, DType::f32, 1));
  const NoGrad no_grad;
  const std::unique_ptr<Module> folded = for_inference(*root);
  EXPECT_EQ(folded->child("conv").kind(), "sparse_conv2d");
  EXPECT_EQ(folded->child("norm").kind(), "identity");
  EXPECT_LE(relative_error((*folded)(x, {}).value(), (*root)(x, {}).value()), kTolerance);
}

TEST(SparseLayers, DrawTheirElementsFromTheSeed) {
  const auto drawn = [](std::uint64_t seed) {
    SparseLinear layer({.in = 30, .out = 20, .kept = 77});
    layer.reset_parameters(seed);
    return layer.to_dense()->parameter("weight").mask().to_vector<std::uint8_t>();
  };
  EXPECT_EQ(drawn(1), drawn(1));
  EXPECT_NE(drawn(1), drawn(2));
  EXPECT_EQ(std::ranges::count(drawn(1), 1), 77);
}

TEST(SparseLayers, CountAsTheWeightsThatTheyStandFor) {
  Sequential root;
  const auto conv = masked_conv();
  root.add_child("masked", masked_conv());
  root.add_child("sparse", SparseConv2d::of(*conv));
  root.add_child("norm", std::make_unique<BatchNorm>(BatchNormConfig{.channels = 10}));
  root.add_child("dense", std::make_unique<Linear>(LinearConfig{.in = 10, .out = 6}));
  const WeightCount count = count_weights(root);
  EXPECT_EQ(count.all, 540 + 540 + 60);
  EXPECT_EQ(count.kept, 108 + 108 + 60);
  EXPECT_NEAR(count.sparsity(), 864.0 / 1140, 1e-12);
}

TEST(SparseLayers, RefuseMasksThatAreNotTheirs) {
  const auto sparse = SparseLinear::of(*masked_linear());
  Buffer& mask = *sparse->buffers().at(0);
  const Tensor good = mask.value.clone();
  const auto message = [&] { return message_of<IoError>([&] { sparse->buffers_changed(); }); };
  mask.value.data<std::uint8_t>()[3] ^= 1;
  EXPECT_EQ(message(), "sparse_linear '': mask keeps 29 elements; needs 30");
  mask.value = good.clone();
  mask.value.data<std::uint8_t>()[14] |= 0x80;  // bits 5 to 7 of the last byte come after the 117th element
  EXPECT_EQ(message(), "sparse_linear '': mask keeps elements behind the last of 117");
  mask.value = Tensor::zeros({14}, DType::u8);
  EXPECT_EQ(message(), "sparse_linear '': mask is u8 [14] on cpu; needs u8 [15]");
  EXPECT_EQ(message_of<ConfigError>([] { SparseLinear({.in = 3, .out = 2, .kept = 7}); }),
            "sparse_linear: kept is 7; the weight [2, 3] has 6 elements");
  EXPECT_EQ(message_of<ConfigError>([] { SparseConv2d({.conv = {.in = 4, .out = 4, .groups = 2}, .kept = 7}); }),
            "sparse_conv2d: groups is 2; needs 1");
}

}  // namespace
}  // namespace tessera::testing
