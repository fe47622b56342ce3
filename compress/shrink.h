// The pass that takes masked channels out of a network, which becomes a smaller dense one.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "compress/pass.h"
#include "compress/timing/veto.h"
#include "core/config/fields.h"
#include "layers/channel_flow.h"

namespace tessera {

// The `shrink` block of a stage.
struct ShrinkConfig {
  std::string keep = "faster";
  KeepForConfig keep_for{.decodes = false};  // it takes nothing out of a network that writes text
  void fields(Fields& f);
};

// Channels that every layer reads as zeros are removed: from the layers that make them, their norms, and the inputs of what
// reads them. The network answers what the masked one does. Each convolution and linear layer that has changed has a row, and
// each that has masked outputs which stay, with the reason.
class ShrinkPass final : public Pass {
 public:
  explicit ShrinkPass(ShrinkConfig config) : config_(std::move(config)) {}

  std::string_view name() const override { return "shrink"; }
  std::string_view done() const override { return "shrunk"; }
  // Problem: a network without a masked output.
  std::vector<BlockProblem> try_prepare(std::unique_ptr<Module>& root, const Shape& input, const PassMeans& means = {}) override;
  bool matches(const std::string&, const Module&) const override { return false; }
  std::unique_ptr<Module> rewrite(const Module&, LayerReport&) const override { return nullptr; }
  std::unique_ptr<Module> rewrite_network(Module& root, std::vector<LayerReport>& rows) const override;

 private:
  LayerReport row_of(const LayerChannels& layer, const Module& module) const;

  ShrinkConfig config_;
  ChannelFlow flow_;
  std::vector<std::vector<bool>> keep_;  // of each group; empty: all
};

}  // namespace tessera
