#include "compress/prune/targets.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "compress/patterns/builtin.h"
#include "compress/patterns/channel.h"
#include "compress/ranks/last_match.h"
#include "core/nn/selector.h"
#include "core/support/error.h"
#include "core/support/log.h"
#include "layers/channel_flow.h"
#include "layers/compressed.h"
#include "layers/conv2d.h"
#include "layers/convolution.h"
#include "layers/linear.h"
#include "layers/tied_linear.h"

namespace tessera {
namespace {

bool is_weight(const Parameter& parameter) { return parameter.role() == ParameterRole::weight && parameter.value().rank() >= 2; }

bool is_sparse(const Module& layer) {
  const CompressedLayer* const compressed = as_compressed(layer);
  return compressed != nullptr && compressed->is_sparse();
}

bool has_weight(const Module& layer) {
  return is_sparse(layer) || std::ranges::any_of(layer.parameters(), [](const auto& each) { return is_weight(*each); });
}

// Layers that have weights and do not just share another layer's, in order.
std::vector<Module*> weighted_layers(Module& model) {
  std::vector<Module*> layers;
  for_each_module(model, [&](Module& module) {
    if (has_weight(module)) layers.push_back(&module);
  });
  return layers;
}

// The number of axes of the layer's first weight. A sparse layer counts like a dense one.
std::size_t rank_of_weight(const Module& layer) {
  if (is_sparse(layer)) return dynamic_cast<const Convolution*>(&layer) != nullptr ? 4 : 2;
  const auto found = std::ranges::find_if(layer.parameters(), [](const auto& parameter) { return is_weight(*parameter); });
  return (*found)->value().rank();
}

// The hint of the first module that matches the pattern and shares its weight, or "" if there is none.
std::string hint_of(const std::string& pattern, Module& model) {
  std::string hint;
  for_each_module(model, [&](const Module& module) {
    if (hint.empty() && path_matches(pattern, module.path())) hint = shared_hint(module);
  });
  return hint;
}

// The layers of a block, and the reasons why it leaves others out: "fc is the last linear layer".
struct Selection {
  std::vector<Module*> layers;
  std::vector<std::string> left_out = {};
};

// Whether the last module that has or shares a weight shares it.
bool ends_in_shared(Module& model) {
  bool shared = false;
  for_each_module(model, [&](const Module& module) {
    const bool shares = !why_shared(module).empty();
    if (shares || has_weight(module)) shared = shares;
  });
  return shared;
}

// Leaves out the first convolution, and also the last linear layer unless the network ends in a shared weight. Both have few
// weights, and networks are sensitive to them.
void drop_ends(Module& model, Selection& selection) {
  std::vector<Module*>& layers = selection.layers;
  if (layers.size() > 1 && rank_of_weight(*layers.front()) == 4) {
    selection.left_out.push_back(layers.front()->path() + " is the first convolution");
    layers.erase(layers.begin());
  }
  if (layers.size() > 1 && rank_of_weight(*layers.back()) == 2 && !ends_in_shared(model)) {
    selection.left_out.push_back(layers.back()->path() + " is the last linear layer");
    layers.pop_back();
  }
}

Selection selected(const PruneConfig& config, Module& model, std::vector<BlockProblem>& problems) {
  Selection selection{.layers = weighted_layers(model)};
  std::vector<Module*>& layers = selection.layers;
  if (!config.layers) {
    drop_ends(model, selection);
    return selection;
  }
  std::vector<std::string> paths;
  for (const Module* const layer : layers) paths.push_back(layer->path());
  std::string hint;  // for the pattern that is tried
  try {
    std::vector<std::string> chosen;
    for (const std::string& pattern : selector_patterns(*config.layers)) {
      hint.clear();  // for a faulty pattern, which makes hint_of throw
      hint = hint_of(pattern, model);
      for (const std::string& path : select(pattern, paths)) chosen.push_back(path);
    }
    std::erase_if(layers, [&](const Module* layer) { return std::ranges::find(chosen, layer->path()) == chosen.end(); });
  } catch (const ConfigError& error) {
    problems.push_back({"layers", error.what() + hint});
    layers.clear();
  }
  return selection;
}

std::int64_t rounded(double count) { return std::llround(count); }

// The share of its elements that a weight keeps per unit of eps, as long as it is not full.
double erk_raw(const PrunedWeight& weight) {
  double sum = 0;
  for (const std::int64_t size : weight.parameter->value().shape()) sum += static_cast<double>(size);
  return sum / static_cast<double>(weight.numel());
}

std::vector<double> erk_densities(std::span<const PrunedWeight> weights, double kept) {
  std::vector<double> raw;
  for (const PrunedWeight& weight : weights) raw.push_back(erk_raw(weight));
  std::vector<bool> full(weights.size(), false);
  for (;;) {
    double left = kept, growing = 0;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      const auto numel = static_cast<double>(weights[i].numel());
      full[i] ? left -= numel : growing += raw[i] * numel;
    }
    const double eps = growing > 0 ? left / growing : 0;
    bool more = false;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      if (full[i] || eps * raw[i] < 1) continue;
      full[i] = more = true;
    }
    if (more) continue;
    std::vector<double> densities;
    for (std::size_t i = 0; i < weights.size(); ++i) densities.push_back(full[i] ? 1 : eps * raw[i]);
    return densities;
  }
}

// Parameters pruned with a layer's outputs. Not for a layer that makes the network's outputs: they would change without its bias.
std::vector<Parameter*> followers_of(const Module& layer, const ChannelFlow& flow, Module& model) {
  std::vector<Parameter*> followers;
  if (const auto* const conv = dynamic_cast<const Conv2d*>(&layer)) followers.push_back(conv->bias());
  if (const auto* const linear = dynamic_cast<const Linear*>(&layer)) followers.push_back(linear->bias());
  std::erase(followers, nullptr);
  for (const NormedLayer& pair : flow.normed) {
    if (pair.layer != layer.path()) continue;
    const Module& norm = find_module(model, pair.norm);
    followers.insert(followers.end(), {&norm.parameter("weight"), &norm.parameter("bias")});
  }
  return followers;
}

// Records what is pruned together with whole outputs of a layer.
void follow_outputs(PrunedWeight& weight, const Module& layer, const ChannelFlow& flow, bool coupled, Module& model) {
  const auto channels = std::ranges::find(flow.layers, layer.path(), &LayerChannels::path);
  const bool known = channels != flow.layers.end();
  if (!known || channels->out != flow.output) weight.followers = followers_of(layer, flow, model);
  if (coupled && known && flow.groups[channels->out].fixed.empty()) weight.group = channels->out;
}

struct Candidates {
  std::vector<PrunedWeight> held;
  std::vector<std::string> left_out;  // reasons, such as "conv1.weight has 3 inputs, which 4 does not divide"
  bool all_sparse = false;  // every selected layer is sparse
};

Candidates candidates(const PruneConfig& config, Module& model, std::vector<BlockProblem>& problems) {
  const std::unique_ptr<const Pattern> pattern = make_pattern(config.pattern);
  const bool whole = pattern->name() == ChannelPattern::kName;
  const ChannelFlow flow = whole ? channel_flow(model) : ChannelFlow();
  Selection selection = selected(config, model, problems);
  Candidates found{.held = {}, .left_out = std::move(selection.left_out)};
  found.all_sparse =
      !selection.layers.empty() && std::ranges::all_of(selection.layers, [](const auto* l) { return is_sparse(*l); });
  for (Module* const layer : selection.layers) {
    if (is_sparse(*layer)) found.left_out.push_back(layer->path() + " is sparse already (prune before sparsify)");
    for (const auto& parameter : layer->parameters()) {
      if (!is_weight(*parameter)) continue;
      const std::string path = join_path(layer->path(), parameter->name());
      if (const std::string why = pattern->why_not(parameter->value().shape()); !why.empty()) {
        found.left_out.push_back(str(path, ' ', why));
        continue;
      }
      PrunedWeight& weight = found.held.emplace_back();
      weight.path = path;
      weight.layer = layer->path();
      weight.parameter = parameter.get();
      weight.target = config.sparsity.target;
      if (whole) follow_outputs(weight, *layer, flow, config.pattern.coupled.value_or(false), model);
    }
  }
  return found;
}

// Applies the rules to the layers that are pruned, once for each layer.
void apply_rules(std::span<const TargetRule> rules, std::span<PrunedWeight> weights, std::vector<BlockProblem>& problems) {
  std::vector<std::string> paths;
  for (const PrunedWeight& weight : weights) {
    if (paths.empty() || paths.back() != weight.layer) paths.push_back(weight.layer);
  }
  std::vector<Value> selectors;
  for (const TargetRule& rule : rules) selectors.push_back(rule.layers);
  const LastMatches found = last_matches(selectors, "sparsity.targets", paths, problems);
  for (PrunedWeight& weight : weights) {
    const std::optional<std::size_t> rule =
        found.rule_of[static_cast<std::size_t>(std::ranges::find(paths, weight.layer) - paths.begin())];
    if (rule) weight.target = rules[*rule].target;
  }
}

}  // namespace

void mask_followers(std::span<const PrunedWeight> weights) {
  for (const PrunedWeight& weight : weights) {
    const std::vector<bool> gone = masked_outputs(*weight.parameter);
    if (std::ranges::find(gone, true) == gone.end()) continue;
    for (Parameter* const follower : weight.followers) {
      const Tensor mask = Tensor::full(follower->value().shape(), 1, DType::u8);
      for (std::size_t i = 0; i < gone.size(); ++i) mask.data<std::uint8_t>()[i] = gone[i] ? 0 : 1;
      follower->set_mask(mask);
    }
  }
}

std::int64_t kept_elements(const Tensor& mask) {
  const Tensor host = mask.to(Device::cpu()).contiguous();
  const std::uint8_t* const bits = host.data<std::uint8_t>();
  return std::accumulate(bits, bits + host.numel(), std::int64_t{0});
}

std::int64_t PrunedWeight::kept() const { return parameter->mask().defined() ? kept_elements(parameter->mask()) : numel(); }

std::vector<PrunedWeight> pruned_weights(const PruneConfig& config, Module& model, std::vector<BlockProblem>& problems) {
  const std::size_t before = problems.size();
  const Candidates found = candidates(config, model, problems);
  std::vector<PrunedWeight> weights = found.held;
  if (found.all_sparse) {
    problems.push_back({"layers", "each of these layers is sparse already; prune before sparsify"});
  } else if (weights.empty() && problems.size() == before) {
    const std::string reason = found.left_out.empty() ? "" : str("; ", found.left_out.back());
    problems.push_back({"layers", str("no layer has a weight that pattern ", config.pattern.pattern, " can hold", reason)});
  }
  if (!weights.empty()) apply_rules(config.sparsity.targets, weights, problems);
  return weights;
}

std::vector<PrunedWeight> pruned_weights_or_throw(const PruneConfig& config, Module& model) {
  std::vector<BlockProblem> problems;
  std::vector<PrunedWeight> weights = pruned_weights(config, model, problems);
  TESSERA_CHECK(problems.empty(), ConfigError, "prune: ", problems.front().key, ": ", problems.front().message);
  return weights;
}

std::vector<std::string> left_out(const PruneConfig& config, Module& model) {
  std::vector<BlockProblem> problems;
  return candidates(config, model, problems).left_out;
}

void tell_left_out(std::string_view block, const PruneConfig& config, Module& model) {
  std::string all;
  for (const std::string& each : left_out(config, model)) all += str(all.empty() ? "" : "; ", each);
  if (!all.empty()) log_warning(str(block, ": left out: ", all));
}

void hold_mask(Parameter& parameter) {
  if (parameter.mask().defined()) parameter.set_mask(parameter.mask());
}

std::int64_t kept_at(double sparsity, std::int64_t elements) { return rounded((1 - sparsity) * static_cast<double>(elements)); }

std::vector<Budget> layer_budgets(std::span<const PrunedWeight> weights, std::span<const double> sparsities) {
  std::vector<Budget> each;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    each.push_back({.members = {i}, .kept = kept_at(sparsities[i], weights[i].numel())});
  }
  return each;
}

std::vector<std::vector<std::size_t>> coupled_weights(std::span<const PrunedWeight> weights) {
  std::vector<std::vector<std::size_t>> sets;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const auto same = [&](const std::vector<std::size_t>& set) {
      return weights[i].group && weights[set[0]].group == weights[i].group;
    };
    const auto found = std::ranges::find_if(sets, same);
    found == sets.end() ? sets.push_back({i}) : found->push_back(i);
  }
  return sets;
}

std::vector<Budget> budgets(const std::string& scope, std::span<const PrunedWeight> weights, double sparsity) {
  double total = 0;
  for (const PrunedWeight& weight : weights) total += static_cast<double>(weight.numel());
  const double kept = (1 - sparsity) * total;
  if (scope == "global") {
    Budget all{.members = std::vector<std::size_t>(weights.size()), .kept = rounded(kept)};
    std::iota(all.members.begin(), all.members.end(), std::size_t{0});
    return {all};
  }
  if (scope == "layer") return layer_budgets(weights, std::vector<double>(weights.size(), sparsity));
  const std::vector<double> densities = erk_densities(weights, kept);
  std::vector<Budget> each;
  double before = 0;  // a running sum, so that the parts sum to the whole
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const double upto = before + densities[i] * static_cast<double>(weights[i].numel());
    each.push_back({.members = {i}, .kept = rounded(upto) - rounded(before)});
    before = upto;
  }
  return each;
}

std::vector<Budget> coupled_budgets(std::span<const Budget> budgets, std::span<const std::vector<std::size_t>> sets) {
  const bool shared = budgets.size() == 1;  // by all weights; otherwise each weight has a separate budget
  std::vector<Budget> coupled(shared ? 1 : sets.size());
  for (std::size_t set = 0; set < sets.size(); ++set) {
    Budget& own = coupled[shared ? 0 : set];
    own.members.push_back(set);
    if (shared) continue;
    for (const std::size_t i : sets[set]) own.kept += budgets[i].kept;
  }
  if (shared) coupled[0].kept = budgets[0].kept;
  return coupled;
}

}  // namespace tessera
