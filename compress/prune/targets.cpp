#include "compress/prune/targets.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "compress/patterns/builtin.h"
#include "compress/patterns/channel.h"
#include "core/nn/selector.h"
#include "core/support/error.h"
#include "layers/channel_flow.h"
#include "layers/conv2d.h"
#include "layers/linear.h"

namespace tessera {
namespace {

bool is_weight(const Parameter& parameter) { return parameter.role() == ParameterRole::weight && parameter.value().rank() >= 2; }

// Layers that have weights of their own, in order.
std::vector<Module*> weighted_layers(Module& model) {
  std::vector<Module*> layers;
  for_each_module(model, [&](Module& module) {
    const auto& parameters = module.parameters();
    if (std::ranges::any_of(parameters, [](const auto& parameter) { return is_weight(*parameter); })) layers.push_back(&module);
  });
  return layers;
}

std::size_t rank_of_weight(const Module& layer) {
  const auto found = std::ranges::find_if(layer.parameters(), [](const auto& parameter) { return is_weight(*parameter); });
  return (*found)->value().rank();
}

// Few weights, which networks are sensitive to: those of a first convolution and of a last linear layer.
void drop_ends(std::vector<Module*>& layers) {
  if (layers.size() > 1 && rank_of_weight(*layers.front()) == 4) layers.erase(layers.begin());
  if (layers.size() > 1 && rank_of_weight(*layers.back()) == 2) layers.pop_back();
}

std::vector<Module*> selected(const PruneConfig& config, Module& model, std::vector<BlockProblem>& problems) {
  std::vector<Module*> layers = weighted_layers(model);
  if (!config.layers) {
    drop_ends(layers);
    return layers;
  }
  std::vector<std::string> paths;
  for (const Module* const layer : layers) paths.push_back(layer->path());
  try {
    const std::vector<std::string> chosen = select(selector_patterns(*config.layers), paths);
    std::erase_if(layers, [&](const Module* layer) { return std::ranges::find(chosen, layer->path()) == chosen.end(); });
  } catch (const ConfigError& error) {
    problems.push_back({"layers", error.what()});
    layers.clear();
  }
  return layers;
}

std::int64_t rounded(double count) { return std::llround(count); }

// Share of its elements that a weight keeps for each unit of eps, before it is full.
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

// Of a layer whose outputs are not the network's, which without its bias would be others.
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

// What pruning whole outputs of a layer takes along.
void follow_outputs(PrunedWeight& weight, const Module& layer, const ChannelFlow& flow, bool coupled, Module& model) {
  const auto channels = std::ranges::find(flow.layers, layer.path(), &LayerChannels::path);
  const bool known = channels != flow.layers.end();
  if (!known || channels->out != flow.output) weight.followers = followers_of(layer, flow, model);
  if (coupled && known && flow.groups[channels->out].fixed.empty()) weight.group = channels->out;
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

std::int64_t PrunedWeight::kept() const {
  const Tensor& mask = parameter->mask();
  if (!mask.defined()) return numel();
  const Tensor host = mask.to(Device::cpu()).contiguous();
  const std::uint8_t* const bits = host.data<std::uint8_t>();
  return std::accumulate(bits, bits + host.numel(), std::int64_t{0});
}

std::vector<PrunedWeight> pruned_weights(const PruneConfig& config, Module& model, std::vector<BlockProblem>& problems) {
  const std::unique_ptr<const Pattern> pattern = make_pattern(config.pattern);
  const std::size_t before = problems.size();
  std::vector<PrunedWeight> weights;
  std::string reason;
  const bool whole = pattern->name() == ChannelPattern::kName;
  const ChannelFlow flow = whole ? channel_flow(model) : ChannelFlow();
  for (Module* const layer : selected(config, model, problems)) {
    for (const auto& parameter : layer->parameters()) {
      if (!is_weight(*parameter)) continue;
      if (std::string why = pattern->why_not(parameter->value().shape()); !why.empty()) {
        reason = str("; ", join_path(layer->path(), parameter->name()), ' ', why);
        continue;
      }
      weights.push_back({join_path(layer->path(), parameter->name()), parameter.get()});
      if (whole) follow_outputs(weights.back(), *layer, flow, config.pattern.coupled.value_or(false), model);
    }
  }
  if (weights.empty() && problems.size() == before) {
    problems.push_back({"layers", str("prune: no layer has a weight that pattern ", pattern->name(), " can hold", reason)});
  }
  return weights;
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
  std::vector<double> densities(weights.size(), 1 - sparsity);
  if (scope == "erk") densities = erk_densities(weights, kept);
  std::vector<Budget> each;
  double before = 0;  // so that the parts of erk sum to the whole
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (scope == "layer") before = 0;
    const double upto = before + densities[i] * static_cast<double>(weights[i].numel());
    each.push_back({.members = {i}, .kept = rounded(upto) - rounded(before)});
    before = upto;
  }
  return each;
}

std::vector<Budget> coupled_budgets(std::span<const Budget> budgets, std::span<const std::vector<std::size_t>> sets) {
  const bool shared = budgets.size() == 1;  // by all weights; else each has its own
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
