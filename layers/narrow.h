// Networks without some of their channels.
#pragma once

#include <memory>
#include <vector>

#include "layers/channel_flow.h"

namespace tessera {

// A copy of a network of built-in layers that has only some channels, in its layers' outputs, norms and the inputs of what reads
// them. `keep` says of each group of the network's flow which channels stay; an empty entry keeps all. What is left keeps its
// values, trainability and masks, except masks that keep everything, which are dropped. On the CPU.
std::unique_ptr<Module> narrowed(const Module& network, const ChannelFlow& flow, const std::vector<std::vector<bool>>& keep);

}  // namespace tessera
