// Which channels of a network are the same ones: what a layer makes, and others scale, add up and read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/nn/module.h"

namespace tessera {

// Channels that every layer that has them has together.
struct ChannelGroup {
  std::int64_t channels = 0;  // 0 where no layer that is followed makes them
  std::string fixed = {};  // why all of them stay: "are the network's output"; "" where some may go
  // Of each: no layer reads anything but zeros of it in evaluation, by masks of those that make it. The network answers the same
  // without it.
  std::vector<bool> zero = {};
};

// Indices of the groups of a layer's input and output. A norm has one; so has a depthwise convolution.
struct LayerChannels {
  std::string path;
  std::size_t in = 0, out = 0;
};

// A batch norm and the convolution or linear layer right before it.
struct NormedLayer {
  std::string layer, norm;
};

struct ChannelFlow {
  std::vector<ChannelGroup> groups;
  std::vector<LayerChannels> layers;  // convolutions, linear layers, batch norms and residual blocks, in forward order
  std::vector<NormedLayer> normed;
  std::size_t output = 0;  // group
};

// Follows channels through sequences, residual sums, dense and depthwise convolutions, linear layers, batch norms, pools,
// flattening and what maps zero to zero. Channels that any other layer makes or reads are fixed; so are those of an option_a
// shortcut that adds channels, which stand at other indices behind it.
ChannelFlow channel_flow(const Module& root);

// Of each output of the parameter, its first axis: whether its mask keeps nothing. Without a mask none.
std::vector<bool> masked_outputs(const Parameter& parameter);

}  // namespace tessera
