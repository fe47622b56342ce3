// Which channels of a network belong together: those that a layer makes and that other layers scale, add up and read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/nn/module.h"

namespace tessera {

// Channels that occur together, in every layer that has any of them.
struct ChannelGroup {
  std::int64_t channels = 0;  // 0 where no layer that is followed makes them
  std::string fixed = {};  // why all of them stay: "are the network's output"; "" where some may go
  // For each channel, whether every layer reads it as zero in evaluation, because of masks of the layers that make it. The
  // network answers the same without it.
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
// shortcut that adds channels, because they have other indices behind it.
ChannelFlow channel_flow(const Module& root);

// For each output of the parameter, its first axis, whether the mask keeps nothing of it. Without a mask none.
std::vector<bool> masked_outputs(const Parameter& parameter);

}  // namespace tessera
