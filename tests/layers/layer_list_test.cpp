#include <gtest/gtest.h>

#include "core/error.h"
#include "layers/conv2d.h"
#include "layers/models/model.h"

namespace tessera {
namespace {

std::unique_ptr<Module> build_list(const char* json, const Shape& input) {
  return build_model({.name = "layers", .layers = parse_json(json, "test")}, input);
}

std::string message_of(const char* json, const Shape& input) {
  try {
    build_list(json, input);
  } catch (const ConfigError& failure) {
    return failure.what();
  }
  return "nothing thrown";
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

TEST(LayerList, FaultsNameTheItem) {
  EXPECT_NE(message_of(R"(["relu", {"linear": {"uot": 3}}])", {1, 4}).find("layers[1].linear"), std::string::npos);
  EXPECT_NE(message_of(R"([{"liner": {"out": 3}}])", {1, 4}).find("did you mean 'linear'"), std::string::npos);
  EXPECT_NE(message_of(R"([3])", {1, 4}).find("item 0 is an integer"), std::string::npos);
  EXPECT_NE(message_of(R"(["basic_block"])", {1, 4, 4, 2}).find("made of other layers"), std::string::npos);
  EXPECT_NE(message_of(R"([])", {1, 4}).find("empty"), std::string::npos);
  EXPECT_NE(message_of(R"([{"relu": {"name": "a"}}, {"relu": {"name": "a"}}])", {1, 4}).find("two children"), std::string::npos);
}

}  // namespace
}  // namespace tessera
