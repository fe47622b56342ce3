#include "compress/sparsify.h"

#include <algorithm>
#include <vector>

#include "core/nn/selector.h"
#include "core/support/error.h"
#include "core/support/text.h"
#include "layers/sparse_conv2d.h"
#include "layers/sparse_linear.h"

namespace tessera {
namespace {

// The weight of a layer that has a sparse form; null for every other module.
const Parameter* weight_of(const Module& module) {
  if (const auto* const conv = dynamic_cast<const Conv2d*>(&module)) return &conv->weight();
  if (const auto* const linear = dynamic_cast<const Linear*>(&module)) return &linear->weight();
  return nullptr;
}

std::string why_not(const Module& module) {
  const auto* const conv = dynamic_cast<const Conv2d*>(&module);
  if (conv != nullptr && conv->options().groups != 1) {
    return str("has ", conv->options().groups, " groups; sparse kernels need 1");
  }
  if (!weight_of(module)->mask().defined()) return "its weight has no mask; a prune block makes one";
  return "";
}

}  // namespace

void SparsifyConfig::fields(Fields& f) {
  f.add("layers", layers,
        {.help = "selector of layers, or a list of selectors; every layer whose weight a prune block masked",
         .example = "layer*.conv*",
         .observable = "report"});
  f.add("keep", keep,
        {.help = "faster: a layer that is not faster than its dense original goes back, and keeps its mask; always: it stays, and "
                 "is marked",
         .choices = {"faster", "always"},
         .observable = "report"});
  f.add("keep_for", keep_for,
        {.help = "where it has to be faster", .example = "{batch: 128, phase: training}", .observable = "report"});
  f.require(!layers || is_selector(*layers), "layers", "needs a selector or a list of selectors");
}

std::vector<BlockProblem> SparsifyPass::try_prepare(std::unique_ptr<Module>& root, const Shape&, const PassMeans&) {
  reasons_.clear();
  std::vector<const Module*> layers;
  std::vector<std::string> paths;
  for_each_module(*root, [&](const Module& module) {
    if (weight_of(module) == nullptr) return;
    layers.push_back(&module);
    paths.push_back(module.path());
  });
  std::vector<std::string> selected = paths;
  if (config_.layers) {
    try {
      selected = select(selector_patterns(*config_.layers), paths);
    } catch (const ConfigError& error) {
      return {{"layers", error.what()}};
    }
  }
  bool masked = false;
  for (const Module* const layer : layers) {
    const bool has_mask = weight_of(*layer)->mask().defined();
    masked = masked || has_mask;
    if (std::ranges::find(selected, layer->path()) == selected.end() || (!config_.layers && !has_mask)) continue;
    reasons_[layer->path()] = why_not(*layer);
  }
  if (masked) return {};
  reasons_.clear();
  return {{"layers", "no layer's weight has a mask; a prune block in an earlier stage makes them"}};
}

std::unique_ptr<Module> SparsifyPass::rewrite(const Module& module, LayerReport& report) const {
  report.format = done();
  report.reason = reasons_.at(module.path());
  if (!report.reason.empty()) return nullptr;
  report.ranks_asked = "mask";
  std::unique_ptr<Module> made;
  if (const auto* const conv = dynamic_cast<const Conv2d*>(&module)) {
    made = SparseConv2d::of(*conv);
  } else {
    made = SparseLinear::of(dynamic_cast<const Linear&>(module));
  }
  report.ranks = as_compressed(*made)->ranks();
  return made;
}

}  // namespace tessera
