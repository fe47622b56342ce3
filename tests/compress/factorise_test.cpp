#include "compress/factorise.h"

#include <gtest/gtest.h>

#include "compress/pass_runner.h"
#include "core/config/read.h"
#include "core/error.h"
#include "layers/activation.h"
#include "layers/sequential.h"
#include "tests/core/linalg/linalg_support.h"

namespace tessera::testing {
namespace {

const Shape kInput{2, 8, 8, 3};

// stem 3 -> 16, block.a 16 -> 32 (stride 2), block.point (1x1), block.b 32 -> 32, block.grouped.
std::unique_ptr<Module> network() {
  auto root = std::make_unique<Sequential>();
  root->add_child("stem", std::make_unique<Conv2d>(Conv2dConfig{.in = 3, .out = 16, .padding = {1, 1}}));
  root->add_child("relu", std::make_unique<Relu>());
  Module& block = root->add_child("block", std::make_unique<Sequential>());
  block.add_child("a", std::make_unique<Conv2d>(Conv2dConfig{.in = 16, .out = 32, .stride = {2, 2}, .padding = {1, 1}}));
  block.add_child("point", std::make_unique<Conv2d>(Conv2dConfig{.in = 32, .out = 32, .kernel = {1, 1}}));
  block.add_child("b", std::make_unique<Conv2d>(Conv2dConfig{.in = 32, .out = 32, .padding = {1, 1}, .bias = false}));
  block.add_child("grouped", std::make_unique<Conv2d>(Conv2dConfig{.in = 32, .out = 32, .groups = 4}));
  initialize(*root, 1);
  return root;
}

FactoriseConfig config_of(const std::string& json) { return read<FactoriseConfig>(parse_json(json, "test")); }

PassReport factorise(std::unique_ptr<Module>& root, const std::string& json) {
  FactorisePass pass(config_of(json));
  return run_pass(root, pass, kInput);
}

TEST(Factorise, ReachesTheMacsAskedForOverTheMatchedLayers) {
  auto root = network();
  const PassReport report = factorise(root, R"({"layers": "block.[ab]", "ranks": {"macs": 0.4}})");
  ASSERT_EQ(report.layers.size(), 2u);
  std::int64_t before = 0, after = 0;
  for (const LayerReport& layer : report.layers) {
    EXPECT_EQ(layer.decision, Decision::factored);
    EXPECT_EQ(layer.kind_after, "tucker2_conv2d");
    EXPECT_EQ(layer.ranks_asked, "macs 0.4 per matched");
    EXPECT_GT(layer.relative_error, 0.0);
    EXPECT_LT(layer.relative_error, 1.0);
    before += layer.macs_before;
    after += layer.macs_after;
  }
  EXPECT_LE(static_cast<double>(after), 0.4 * static_cast<double>(before));
  EXPECT_GT(static_cast<double>(after), 0.37 * static_cast<double>(before));
  EXPECT_EQ(report.before.macs - report.after.macs, before - after);
  EXPECT_EQ(find_module(*root, "block.a").kind(), "tucker2_conv2d");
  EXPECT_EQ(find_module(*root, "stem").kind(), "conv2d");
}

TEST(Factorise, ReportsWhatItLeavesDense) {
  auto root = network();
  const PassReport report = factorise(root, R"({"layers": ["block.*"], "ranks": {"out": 8, "in": 8}})");
  ASSERT_EQ(report.layers.size(), 4u);
  EXPECT_EQ(report.layers[0].path, "block.a");
  EXPECT_EQ(*report.layers[0].ranks, (Tucker2Ranks{8, 8}));
  EXPECT_EQ(report.layers[1].reason, "has a 1x1 kernel; tucker2 needs a larger one");
  EXPECT_EQ(report.layers[1].decision, Decision::dense);
  EXPECT_EQ(report.layers[1].macs_after, report.layers[1].macs_before);
  EXPECT_EQ(report.layers[3].reason, "has 4 groups; tucker2 needs 1");
  EXPECT_EQ(why_not_factorise(find_module(*root, "relu")), "is a relu; tucker2 factors conv2d");
}

TEST(Factorise, KeepsTheWeightEnergyAskedFor) {
  auto root = network();
  const PassReport report = factorise(root, R"({"layers": "block.b", "ranks": {"energy": 0.7}})");
  const LayerReport& layer = report.layers.at(0);
  ASSERT_EQ(layer.decision, Decision::factored) << layer.reason;
  EXPECT_LE(layer.relative_error * layer.relative_error, 2 * 0.3);  // each mode discards at most 0.3 of the energy
}

TEST(Factorise, AFactoredNetworkStillRuns) {
  auto root = network();
  factorise(root, R"({"layers": "*", "ranks": {"macs": 0.5}, "hooi": {"iterations": 0}})");
  const Var x(random_tensor(kInput, DType::f32));
  EXPECT_EQ(root->forward(x, {}).shape(), root->output_shape(kInput));
}

TEST(Factorise, ListsTheParametersThatChanged) {
  auto root = network();
  const PassReport report = factorise(root, R"({"layers": "block.a", "ranks": {"out": 4, "in": 4}})");
  ASSERT_EQ(report.changes.size(), 2u);
  EXPECT_EQ(report.changes[0].old_path, "block.a.weight");
  EXPECT_EQ(report.changes[0].new_path, "");
  EXPECT_EQ(report.changes[1].old_path, "block.a.bias");
  EXPECT_EQ(report.changes[1].new_path, "block.a.bias");
}

TEST(Factorise, MessagesNameTheSelectorOrTheLayer) {
  auto root = network();
  EXPECT_EQ(message_of<ConfigError>([&] { factorise(root, R"({"layers": "blok.a", "ranks": {"macs": 0.4}})"); }).find(
                "selector 'blok.a' matches no layer; nearest: block.a"),
            0u);
  EXPECT_EQ(message_of<ConfigError>([&] { factorise(root, R"({"layers": "relu", "ranks": {"macs": 0.4}})"); }),
            "factorise: layers \"relu\" match no convolution; matched: relu");
  EXPECT_EQ(message_of<ConfigError>([&] { factorise(root, R"({"layers": "block.a", "ranks": {"out": 8, "in": 17}})"); }),
            "layer 'block.a': in rank is 17, the mode has size 16; legal range is 1..16");
  EXPECT_EQ(find_module(*root, "block.a").kind(), "conv2d");
}

TEST(Factorise, ConfigRefusesWhatItCannotDo) {
  EXPECT_NE(message_of<ConfigError>([] { config_of(R"({"layers": 3, "ranks": {"macs": 0.4}})"); }).find("list of selectors"),
            std::string::npos);
  EXPECT_NE(message_of<ConfigError>([] { config_of(R"({"layers": "*", "ranks": {"macs": 0.4}, "keep": "faster"})"); }), "");
  EXPECT_NE(message_of<ConfigError>([] { config_of(R"({"ranks": {"macs": 0.4}})"); }).find("layers"), std::string::npos);
  EXPECT_NE(message_of<ConfigError>([] { config_of(R"({"layers": "*", "rnaks": {"macs": 0.4}})"); }).find("rnaks"),
            std::string::npos);
}

}  // namespace
}  // namespace tessera::testing
