#include "compress/sparsify.h"

#include <algorithm>
#include <vector>

#include "compress/formats/sparse_layer.h"
#include "core/nn/selector.h"
#include "core/support/error.h"
#include "layers/compressed.h"

namespace tessera {
namespace {

// The kept elements of a sparse layer, or of all sparse layers in a chain.
Ranks kept_in(Module& made) {
  std::int64_t kept = 0;
  for_each_module(made, [&](const Module& module) {
    if (const CompressedLayer* const sparse = as_compressed(module)) kept += sparse->ranks().front().value;
  });
  return {{"kept", kept}};
}

}  // namespace

void SparsifyConfig::fields(Fields& f) {
  f.add("layers", layers,
        {.help = "selector of layers, or a list of selectors; every layer whose weight a prune block masked",
         .example = "layer*.conv*",
         .observable = "report"});
  f.add(
      "keep", keep,
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
    if (sparse_candidates(module).empty()) return;
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
    const bool has_mask = std::ranges::any_of(sparse_candidates(*layer), [](const Parameter* w) { return w->mask().defined(); });
    masked = masked || has_mask;
    if (std::ranges::find(selected, layer->path()) == selected.end() || (!config_.layers && !has_mask)) continue;
    reasons_[layer->path()] = why_not_sparse(*layer);
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
  std::unique_ptr<Module> made = sparse_layer(module);
  report.ranks = kept_in(*made);
  return made;
}

}  // namespace tessera
