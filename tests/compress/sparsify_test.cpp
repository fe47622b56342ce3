#include "compress/sparsify.h"

#include <gtest/gtest.h>

#include "compress/pass_runner.h"
#include "core/config/read.h"
#include "core/support/error.h"
#include "layers/activation.h"
#include "layers/conv2d.h"
#include "layers/flatten.h"
#include "layers/linear.h"
#include "layers/sequential.h"
#include "tests/core/linalg/linalg_support.h"
#include "tests/support/message_of.h"
#include "tests/support/relative_error.h"

namespace tessera::testing {
namespace {

const Shape kInput{2, 6, 6, 4};

void mask_half(Module& layer) {
  Parameter& weight = layer.parameter("weight");
  const Tensor mask = Tensor::zeros(weight.value().shape(), DType::u8);
  for (std::int64_t i = 0; i < mask.numel(); i += 2) mask.data<std::uint8_t>()[i] = 1;
  weight.set_mask(mask);
}

// conv and fc are masked, so is grouped, which no sparse layer can hold; plain is not.
std::unique_ptr<Module> network() {
  auto root = std::make_unique<Sequential>();
  mask_half(root->add_child("conv", std::make_unique<Conv2d>(Conv2dConfig{.in = 4, .out = 8, .padding = {1, 1}})));
  root->add_child("plain", std::make_unique<Conv2d>(Conv2dConfig{.in = 8, .out = 8, .padding = {1, 1}}));
  mask_half(
      root->add_child("grouped", std::make_unique<Conv2d>(Conv2dConfig{.in = 8, .out = 8, .padding = {1, 1}, .groups = 2})));
  root->add_child("flatten", std::make_unique<Flatten>());
  mask_half(root->add_child("fc", std::make_unique<Linear>(LinearConfig{.in = 288, .out = 5})));
  initialize(*root, 1);
  for (const char* name : {"conv", "grouped", "fc"}) mask_half(root->child(name));
  return root;
}

PassReport sparsify(std::unique_ptr<Module>& root, const std::string& json) {
  SparsifyPass pass(read<SparsifyConfig>(parse_json(json, "test")));
  return run_pass(root, pass, kInput);
}

TEST(Sparsify, MaskedLayersBecomeSparseAndAnswerTheSame) {
  auto root = network();
  const Var x(random_tensor(kInput, DType::f32, 1));
  const Tensor before = (*root)(x, {}).value();
  const PassReport report = sparsify(root, "{}");
  ASSERT_EQ(report.layers.size(), 3u);
  EXPECT_EQ(report.layers[0].path, "conv");
  EXPECT_EQ(report.layers[0].decision, "sparse");
  EXPECT_EQ(report.layers[0].kind_after, "sparse_conv2d");
  EXPECT_EQ(report.layers[0].parameters_after, 144 + 8);
  EXPECT_EQ(report.layers[0].macs_after, 144 * 36);
  EXPECT_EQ(report.layers[1].path, "grouped");
  EXPECT_EQ(report.layers[1].decision, "dense");
  EXPECT_EQ(report.layers[1].reason, "has 2 groups; sparse kernels need 1");
  EXPECT_EQ(report.layers[2].kind_after, "sparse_linear");
  EXPECT_EQ(root->child("plain").kind(), "conv2d");
  EXPECT_TRUE(root->child("grouped").parameter("weight").mask().defined());
  EXPECT_LE(relative_error((*root)(x, {}).value(), before), 1e-5);
}

TEST(Sparsify, SelectedLayersWithoutAMaskAreReported) {
  auto root = network();
  const PassReport report = sparsify(root, R"({"layers": ["plain", "fc"]})");
  ASSERT_EQ(report.layers.size(), 2u);
  EXPECT_EQ(report.layers[0].reason, "its weight has no mask; a prune block makes one");
  EXPECT_EQ(report.layers[1].decision, "sparse");
  EXPECT_EQ(root->child("conv").kind(), "conv2d");
}

TEST(Sparsify, WithoutMasksItIsRefused) {
  auto root = network();
  for (const char* name : {"conv", "grouped", "fc"}) root->child(name).parameter("weight").set_mask({});
  EXPECT_NE(message_of<ConfigError>([&] { sparsify(root, "{}"); }).find("no layer's weight has a mask"), std::string::npos);
  auto other = network();
  EXPECT_NE(message_of<ConfigError>([&] { sparsify(other, R"({"layers": "cnv"})"); }).find("conv"), std::string::npos);
}

}  // namespace
}  // namespace tessera::testing
