#include <gtest/gtest.h>

#include "core/support/error.h"
#include "layers/conv2d.h"
#include "layers/models/model.h"
#include "tests/support/message_of.h"

namespace tessera {
namespace {

std::unique_ptr<Module> build_list(const char* json, const Shape& input) {
  return build_model({.form = models::LayerList{.layers = parse_json(json, "test")}}, input);
}

std::string refusal(const char* json, const Shape& input) {
  return message_of<ConfigError>([&] { build_list(json, input); });
}

TEST(LayerList, InfersInputSizesFromTheRunningShape) {
  const auto model = build_list(
      R"([{"conv2d": {"out": 5, "kernel": 3, "padding": 1, "name": "stem"}}, "batch_norm", "relu", {"max_pool2d": {"kernel": 2}},
          "flatten", {"linear": {"out": 7}}])",
      {1, 6, 4, 3});
  const auto& stem = dynamic_cast<const Conv2d&>(model->child("stem"));
  EXPECT_EQ(stem.options().in, 3);
  EXPECT_EQ(model->child("1").parameter("weight").value().shape(), (Shape{5}));
  EXPECT_EQ(model->child("5").parameter("weight").value().shape(), (Shape{7, 3 * 2 * 5}));
  EXPECT_EQ(model->output_shape({2, 6, 4, 3}), (Shape{2, 7}));
}

// Parsed JSON text has no line numbers, so messages start with its origin.
TEST(LayerList, ReportsEveryFaultyItemAtOnce) {
  EXPECT_EQ(
      refusal(R"(["relu", {"linear": {"uot": 3}}, {"liner": {"out": 3}}, 3, "basic_block", {"relu": {}, "flatten": {}},
                          {"conv2d": {"out": "x", "kernel": 0, "name": 7}}, {"conv2d": 3}, {"dropout": {"p": 2}}])",
              {1, 4, 4, 3}),
      "test: model.layers[1].linear.uot: unknown key; did you mean 'out'?\n"
      "test: model.layers[2]: unknown layer 'liner'; did you mean 'linear'?; known: avg_pool2d basic_block batch_norm bottleneck "
      "class_token conv2d cp_conv2d dropout embedding flatten gelu global_avg_pool identity layer_norm linear max_pool2d patches "
      "positions relu residual rms_norm segments self_attention sequential sigmoid silu sparse_conv2d sparse_linear "
      "spatial_svd_conv2d svd_conv2d svd_linear swiglu tanh tied_linear token_pool transformer_block tt_conv2d tt_embedding "
      "tt_garipov_conv2d tt_linear tucker2_conv2d\n"
      "test: model.layers[3]: expected one kind, as in relu or {conv2d: {out: 32}}, found an integer\n"
      "test: model.layers[4]: basic_block is made of other layers; name layers without children\n"
      "test: model.layers[5]: expected one kind, as in relu or {conv2d: {out: 32}}, found 2 keys\n"
      "test: model.layers[6].conv2d.name: expected text, found an integer\n"
      "test: model.layers[6].conv2d.out: expected an integer, found text 'x'\n"
      "test: model.layers[6].conv2d.kernel: is 0; must be at least 1\n"
      "test: model.layers[7].conv2d: expected a block, found 3\n"
      "test: model.layers[8].dropout.p: is 2; must be in [0, 1)");
}

TEST(LayerList, FaultsThatNeedTheShapeNameTheItem) {
  EXPECT_EQ(refusal(R"(["relu", {"conv2d": {"out": 4, "groups": 4}}])", {1, 4, 4, 3}),
            "test: model.layers[1].conv2d.groups: must divide in and out");
  EXPECT_EQ(refusal(R"(["relu", {"conv2d": {"out": 4, "groups": 4}}])", {1, 4, 4, 8}), "");
  EXPECT_NE(refusal(R"([{"relu": {"name": "a"}}, {"relu": {"name": "a"}}])", {1, 4}).find("two children"), std::string::npos);
}

TEST(LayerList, HoldsNoLayerThatIsMadeOfOthers) {
  for (const char* kind : {"basic_block", "bottleneck", "patches", "residual", "sequential", "transformer_block"}) {
    EXPECT_EQ(refusal(str("[\"", kind, "\"]").c_str(), {1, 4, 4, 3}),
              str("test: model.layers[0]: ", kind, " is made of other layers; name layers without children"));
  }
}

TEST(LayerList, AHeadWithoutItsTableIsRefused) {
  EXPECT_EQ(refusal(R"([{"embedding": {"vocabulary": 7, "width": 5, "name": "words"}}, {"tied_linear": {"out": 7}}])", {1, 4}),
            "tied_linear '1': there is no module 'tokens' whose table it could read");
  EXPECT_EQ(refusal(R"([{"embedding": {"vocabulary": 7, "width": 5, "name": "tokens"}}, {"tied_linear": {"out": 7}}])", {1, 4}),
            "");
}

TEST(LayerList, AnEmptyListIsNoNetwork) {
  EXPECT_EQ(refusal("[]", {1, 4}), "test: model.layers: the list is empty; needs a layer");
  EXPECT_EQ(refusal("{}", {1, 4}), "test: model.layers: expected a list of layers, found a block");
}

}  // namespace
}  // namespace tessera
