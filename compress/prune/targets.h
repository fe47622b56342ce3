// Which weights a `prune` block means, and how many of each are kept.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compress/prune/config.h"
#include "compress/ranks/block_problem.h"
#include "core/nn/module.h"

namespace tessera {

// A weight that is pruned: of a convolution or a linear layer, or a factor of a compressed one.
struct PrunedWeight {
  std::string path;  // "layer1.0.conv2.weight"
  std::string layer;  // "layer1.0.conv2"
  Parameter* parameter = nullptr;
  double target = 0;  // sparsity at the end, by the rules of scope `layer`
  // pattern: channel. Parameters that have to be zero, too, for an output to be zero behind the layer: its bias, and scale and
  // shift of a batch norm right behind it. Masked where all of the output's weights are.
  std::vector<Parameter*> followers = {};
  // coupled: the group of its outputs (layers/channel_flow.h), which are pruned together with those of the group's other
  // weights. None where the outputs stay in any case.
  std::optional<std::size_t> group = {};

  std::int64_t numel() const { return parameter->value().numel(); }
  std::int64_t kept() const;  // by its mask; all without one
};

// Gives the weights' followers the masks that follow from those of the weights.
void mask_followers(std::span<const PrunedWeight> weights);

// In the network's order. What is wrong with the block for this network is appended: patterns of `layers` that match nothing, no
// weight, none that the pattern can hold, none that is dense, rules of targets that are for none of the layers. The model
// outlives them.
std::vector<PrunedWeight> pruned_weights(const PruneConfig& config, Module& model, std::vector<BlockProblem>& problems);

// As above. Throws ConfigError with the first problem.
std::vector<PrunedWeight> pruned_weights_or_throw(const PruneConfig& config, Module& model);

// What the block leaves as it is, with the reason: ends of the network where no `layers` are given, weights of its layers that
// the pattern cannot hold, layers that are sparse already.
std::vector<std::string> left_out(const PruneConfig& config, Module& model);
// Warns of it. `block` is the block's name.
void tell_left_out(std::string_view block, const PruneConfig& config, Module& model);

// Sets to 0 again what the parameter's mask, if it has one, does not keep: averages that took the weight's place may have more.
void hold_mask(Parameter& parameter);

std::int64_t kept_elements(const Tensor& mask);  // u8 on any device

// How many elements a weight by itself keeps at this sparsity: (1 - sparsity) elements, rounded.
std::int64_t kept_at(double sparsity, std::int64_t elements);

// Weights that share a budget, and how many elements of them are kept at this sparsity of all.
struct Budget {
  std::vector<std::size_t> members;  // indices of the weights
  std::int64_t kept = 0;
};

// Sets of weights that lose the same outputs, in the order of the first weight of each; a weight of no group is by itself.
std::vector<std::vector<std::size_t>> coupled_weights(std::span<const PrunedWeight> weights);

// scope `layer`: each weight by itself, at its own sparsity, one for each weight.
std::vector<Budget> layer_budgets(std::span<const PrunedWeight> weights, std::span<const double> sparsities);

// At one sparsity. scope `layer`: each weight by itself; `global`: all together; `erk`: each by itself, with the density
// min(1, eps (sum of its sizes) / (product of its sizes)), eps such that the kept total is met (Evci et al., ICML 2020).
std::vector<Budget> budgets(const std::string& scope, std::span<const PrunedWeight> weights, double sparsity);
// The same for sets of weights; members are then indices of sets. A set may keep as many elements as its weights together.
std::vector<Budget> coupled_budgets(std::span<const Budget> budgets, std::span<const std::vector<std::size_t>> sets);

}  // namespace tessera
