// Which channels of a network belong together, and which must not be removed. tests/compress/shrink_test.cpp tests the removal.
#include "layers/channel_flow.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "layers/activation.h"
#include "layers/batch_norm.h"
#include "layers/conv2d.h"
#include "layers/flatten.h"
#include "layers/layer_norm.h"
#include "layers/linear.h"
#include "layers/models/model.h"
#include "layers/narrow.h"
#include "layers/sequential.h"
#include "layers/svd_linear.h"

namespace tessera {
namespace {

const LayerChannels& channels_of(const ChannelFlow& flow, std::string_view path) {
  const auto found = std::ranges::find(flow.layers, path, &LayerChannels::path);
  EXPECT_NE(found, flow.layers.end()) << path;
  return *found;
}

const ChannelGroup& made_by(const ChannelFlow& flow, std::string_view path) { return flow.groups[channels_of(flow, path).out]; }

TEST(ChannelFlow, ResidualSumsJoinWhatTheyAdd) {
  const auto network = build_model({.form = models::CifarResNet{.name = "resnet20", .shortcut = "projection"}}, {1, 32, 32, 3});
  const ChannelFlow flow = channel_flow(*network);
  const std::size_t second = channels_of(flow, "layer2.0.conv2").out;
  for (const char* path : {"layer2.0.downsample.0", "layer2.0.downsample.1", "layer2.1.conv2", "layer2.2.bn2", "layer2.2"}) {
    EXPECT_EQ(channels_of(flow, path).out, second) << path;
  }
  for (const char* path : {"layer2.1.conv1", "layer3.0.conv1", "layer3.0.downsample.0", "layer3.0"}) {
    EXPECT_EQ(channels_of(flow, path).in, second) << path;
  }
  EXPECT_NE(channels_of(flow, "layer2.1.conv1").out, second);
  EXPECT_EQ(flow.groups[second].channels, 32);
  EXPECT_EQ(flow.groups[second].fixed, "");
  EXPECT_EQ(made_by(flow, "fc").fixed, "are the network's output");
  EXPECT_EQ(channels_of(flow, "fc").out, flow.output);
  EXPECT_EQ(flow.groups[channels_of(flow, "conv1").in].fixed, "are the network's input");
}

TEST(ChannelFlow, PaddedShortcutsFixBothSides) {
  const auto network = build_model(named_model("resnet8"), {1, 32, 32, 3});
  const ChannelFlow flow = channel_flow(*network);
  EXPECT_EQ(made_by(flow, "conv1").fixed, "are padded by the option_a shortcut of 'layer2.0'");
  EXPECT_EQ(made_by(flow, "layer3.0.conv2").fixed, "are padded by the option_a shortcut of 'layer3.0'");
  EXPECT_EQ(made_by(flow, "layer3.0.conv1").fixed, "");
}

TEST(ChannelFlow, LayersThatCannotBeNarrowedFixTheirs) {
  Sequential root;
  root.add_child("grouped_in", std::make_unique<Conv2d>(Conv2dConfig{.in = 3, .out = 8}));
  root.add_child("grouped", std::make_unique<Conv2d>(Conv2dConfig{.in = 8, .out = 8, .groups = 2}));
  root.add_child("norm", std::make_unique<BatchNorm>(BatchNormConfig{.channels = 8}));
  root.add_child("conv", std::make_unique<Conv2d>(Conv2dConfig{.in = 8, .out = 6}));
  root.add_child("layer_norm", std::make_unique<LayerNorm>(LayerNormConfig{.channels = 6}));
  root.add_child("flatten", std::make_unique<Flatten>());
  root.add_child("factored", std::make_unique<SvdLinear>(SvdLinearConfig{.in = 24, .out = 12, .rank = 3}));
  root.add_child("fc", std::make_unique<Linear>(LinearConfig{.in = 12, .out = 5}));
  const ChannelFlow flow = channel_flow(root);
  EXPECT_EQ(made_by(flow, "grouped_in").fixed, "are read by 'grouped' (conv2d)");
  EXPECT_EQ(made_by(flow, "norm").fixed, "are made by 'grouped' (conv2d)");
  EXPECT_EQ(made_by(flow, "conv").fixed, "are read by 'layer_norm' (layer_norm)");
  EXPECT_EQ(flow.groups[channels_of(flow, "fc").in].fixed, "are made by 'factored' (svd_linear)");
  ASSERT_EQ(flow.normed.size(), 1u);
  EXPECT_EQ(flow.normed[0].layer, "grouped");
}

TEST(Narrowed, PicksRowsAndInputsByTheirChannels) {
  Sequential root;
  root.add_child("conv", std::make_unique<Conv2d>(Conv2dConfig{.in = 1, .out = 3, .kernel = {1, 1}}));
  root.add_child("flatten", std::make_unique<Flatten>());
  root.add_child("fc", std::make_unique<Linear>(LinearConfig{.in = 6, .out = 1}));  // 3 channels of two pixels
  root.child("conv").parameter("weight").set_value(Tensor::from(std::vector<float>{1, 2, 3}, {3, 1, 1, 1}));
  root.child("conv").parameter("bias").set_value(Tensor::from(std::vector<float>{4, 5, 6}, {3}));
  root.child("fc").parameter("weight").set_value(Tensor::from(std::vector<float>{10, 11, 12, 20, 21, 22}, {1, 6}));
  const ChannelFlow flow = channel_flow(root);
  std::vector<std::vector<bool>> keep(flow.groups.size());
  keep[channels_of(flow, "conv").out] = {true, false, true};
  const auto made = narrowed(root, flow, keep);
  EXPECT_EQ(made->child("conv").parameter("weight").value().to_vector<float>(), (std::vector<float>{1, 3}));
  EXPECT_EQ(made->child("conv").parameter("bias").value().to_vector<float>(), (std::vector<float>{4, 6}));
  EXPECT_EQ(made->child("fc").parameter("weight").value().to_vector<float>(), (std::vector<float>{10, 12, 20, 22}));
  EXPECT_EQ(made->output_shape({2, 1, 2, 1}), (Shape{2, 1}));
}

}  // namespace
}  // namespace tessera
