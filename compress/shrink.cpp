#include "compress/shrink.h"

#include <algorithm>
#include <utility>

#include "core/support/error.h"
#include "layers/conv2d.h"
#include "layers/linear.h"
#include "layers/narrow.h"

namespace tessera {
namespace {

// The weight of a convolution or linear layer, null for every other module.
const Parameter* weight_of(const Module& module) {
  if (const auto* const conv = dynamic_cast<const Conv2d*>(&module)) return &conv->weight();
  if (const auto* const linear = dynamic_cast<const Linear*>(&module)) return &linear->weight();
  return nullptr;
}

// Empty if all of the group's channels stay. At least one always stays.
std::vector<bool> kept_channels(const ChannelGroup& group) {
  if (!group.fixed.empty() || std::ranges::find(group.zero, true) == group.zero.end()) return {};
  std::vector<bool> keep = group.zero;
  keep.flip();
  if (std::ranges::find(keep, true) == keep.end()) keep.front() = true;
  return keep;
}

std::int64_t left(const std::vector<bool>& keep, std::int64_t size) {
  if (keep.empty()) return size;
  const auto channels = static_cast<std::int64_t>(keep.size());
  return size / channels * std::ranges::count(keep, true);  // a flattened image has each channel once for every pixel
}

}  // namespace

void ShrinkConfig::fields(Fields& f) {
  f.add("keep", keep,
        {.help = "faster: where the smaller network is not faster the masked one comes back; always: it stays",
         .choices = {"faster", "always"},
         .observable = "plan"});
  f.add("keep_for", keep_for,
        {.help = "where it has to be faster", .example = "{batch: 128, phase: training}", .observable = "report"});
}

std::vector<BlockProblem> ShrinkPass::try_prepare(std::unique_ptr<Module>& root, const Shape&, const PassMeans&) {
  flow_ = channel_flow(*root);
  keep_.clear();
  for (const ChannelGroup& group : flow_.groups) keep_.push_back(kept_channels(group));
  bool masked = false;
  for_each_module(*root, [&](const Module& module) {
    const Parameter* const weight = weight_of(module);
    if (weight == nullptr) return;
    const std::vector<bool> gone = masked_outputs(*weight);
    masked = masked || std::ranges::find(gone, true) != gone.end();
  });
  if (masked) return {};
  return {{"", "no layer has an output that is masked; a prune block with pattern: channel in an earlier stage masks some"}};
}

LayerReport ShrinkPass::row_of(const LayerChannels& layer, const Module& module) const {
  const Parameter& weight = *weight_of(module);
  LayerReport row;
  row.path = layer.path;
  row.format = "narrow";
  row.ranks_asked = "mask";
  const std::int64_t outputs = weight.value().dim(0);
  const auto* const conv = dynamic_cast<const Conv2d*>(&module);
  const std::int64_t inputs = conv != nullptr ? conv->options().in : weight.value().dim(-1);
  const std::vector<bool>& keep = keep_[layer.out];
  const std::int64_t in = left(keep_[layer.in], inputs), out = left(keep, outputs);
  const std::vector<bool> gone = masked_outputs(weight);
  std::int64_t stay = 0;
  for (std::size_t i = 0; i < gone.size(); ++i) stay += gone[i] && (keep.empty() || keep[i]) ? 1 : 0;
  if (stay > 0) {
    const std::string& fixed = flow_.groups[layer.out].fixed;
    const std::string why = fixed.empty() ? "are not zero where they are read, behind a sum or a norm" : fixed;
    row.reason = str(stay, " masked outputs stay, for these channels ", why);
  }
  if (in == inputs && out == outputs) return row;
  row.ranks = Ranks{{"in", in}, {"out", out}};
  row.decision = std::string(done());
  return row;
}

std::unique_ptr<Module> ShrinkPass::rewrite_network(Module& root, std::vector<LayerReport>& rows) const {
  bool changed = false;
  for (const LayerChannels& layer : flow_.layers) {
    const Module& module = find_module(root, layer.path);
    if (weight_of(module) == nullptr) continue;
    LayerReport row = row_of(layer, module);
    changed = changed || !row.stays_dense();
    if (!row.stays_dense() || !row.reason.empty()) rows.push_back(std::move(row));
  }
  return changed ? narrowed(root, flow_, keep_) : nullptr;
}

}  // namespace tessera
