#include "compress/factorise.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

#include "compress/formats/builtin.h"
#include "compress/ranks/latency_ranks.h"
#include "core/finite.h"
#include "core/linalg/mode_product.h"
#include "core/linalg/relative_error.h"
#include "core/nn/selector.h"
#include "core/support/error.h"
#include "layers/tied_linear.h"

namespace tessera {

namespace {

std::vector<std::string> layer_paths(Module& root) {
  std::vector<std::string> paths;
  for_each_module(root, [&](Module& module) {
    if (!module.path().empty()) paths.push_back(module.path());
  });
  return paths;
}

}  // namespace

void FactoriseConfig::fields(Fields& f) {
  f.add("from", from,
        {.help = "an earlier stage whose admm block settled layers, format and ranks; these keys are not given here then",
         .example = "admm",
         .observable = "report"});
  if (!from) LowRankConfig::fields(f);
  f.add("singular_vectors", singular_vectors,
        {.help = "how singular vectors are found: all of them, or approximately the first ones, in less time and memory",
         .choices = {"full", "randomised"},
         .observable = "bytes"});
  f.add("weighted", weighted,
        {.help = "true: keep what the layers answer on training data rather than their weights: each is decomposed "
                 "after its product with the square root of its inputs' second moments",
         .observable = "bytes"});
  f.add("recalibrate", recalibrate,
        {.help = "training batches on which batch-norm statistics are measured anew, before any fine-tuning; 0: none",
         .range = non_negative,
         .example = "50",
         .observable = "bytes"});
  if (from) return;  // the stage that `from` names has the form
  for (const auto& [key, problem] : form_problems()) f.require(false, key, problem);
}

std::vector<std::pair<std::string, std::string>> FactoriseConfig::form_problems() const {
  std::vector<std::pair<std::string, std::string>> problems;
  const Format* const form = known_format();
  if (form == nullptr) return problems;
  if (weighted && !form->ends_in_input_channels()) {
    problems.emplace_back("weighted", str(format,
                                          " splits the input channels, so that a product with their moments cannot be "
                                          "taken back; leave it out"));
  }
  if (singular_vectors != "full" && !form->randomises()) {
    problems.emplace_back("singular_vectors", str(format, " has no randomised decomposition; leave it out"));
  }
  return problems;
}

FactorisePass::FactorisePass(FactoriseConfig config, Values values, std::optional<std::vector<LayerRanks>> settled)
    : config_(std::move(config)), settled_(std::move(settled)), form_(config_.form()), format_(*form_), values_(values) {}

// The leaves of a network, and which of them are matched layers of the format's kinds.
struct FactorisePass::Matched {
  Trace trace;
  std::vector<std::size_t> rows;  // indices into the trace
  std::vector<DenseLayer> layers;  // at these rows
};

// The rows, as indices into Matched, that one rule applies to.
struct FactorisePass::Group {
  const RankConfig* ranks;
  std::string key;  // the rule's key in the block
  std::vector<std::size_t> members;
};

// Sorts layers in the order of the trace. They come in the order of the block's rules.
std::vector<RankLayer> in_order_of(const Trace& trace, std::vector<RankLayer> layers) {
  std::ranges::stable_sort(layers, {}, [&](const RankLayer& layer) {
    return std::ranges::find(trace, layer.dense.path, &LayerCost::path) - trace.begin();
  });
  return layers;
}

std::optional<FactorisePass::Matched> FactorisePass::match(Module& root, const Shape& input,
                                                           std::vector<BlockProblem>& problems) const {
  const std::vector<std::string> patterns = selector_patterns(config_.layers);
  std::vector<std::string> selected;
  try {
    selected = select(patterns, layer_paths(root));
  } catch (const ConfigError& error) {
    problems.push_back({settled_ ? "from" : "layers", error.what()});
    return std::nullopt;
  }
  Matched matched;
  std::string hint;  // for the first layer that is passed over although the form holds its kind
  root.output_shape(input, &matched.trace);
  for (std::size_t row = 0; row < matched.trace.size(); ++row) {
    const std::string& path = matched.trace[row].path;
    const Module& module = find_module(root, path);
    if (std::ranges::find(selected, path) == selected.end()) continue;
    const std::optional<DenseLayer> dense = is_form_of(format_, module) ? dense_layer(module, matched.trace[row]) : std::nullopt;
    if (!dense) {
      if (hint.empty()) hint = shared_hint(module);
      continue;
    }
    if (dense->looked_up && std::ranges::find(patterns, path) == patterns.end()) {
      if (hint.empty()) hint = str("; '", path, "' is a table, which its whole path alone selects");
      continue;
    }
    matched.rows.push_back(row);
    matched.layers.push_back(*dense);
  }
  if (!matched.layers.empty()) return matched;
  problems.push_back(
      {settled_ ? "from" : "layers", str(name(), ": layers ", to_json(config_.layers), " match no ", kinds_text(format_),
                                         "; matched: ", selected.front(), selected.size() > 1 ? ", ..." : "", hint)});
  return std::nullopt;
}

std::vector<FactorisePass::Group> FactorisePass::groups(const Matched& matched, std::vector<BlockProblem>& problems) const {
  std::vector<Group> made;
  std::vector<std::string> paths;
  for (const DenseLayer& layer : matched.layers) paths.push_back(layer.path);
  for (auto& [key, ranks] : config_.rank_configs()) made.push_back({ranks, std::move(key), {}});
  if (config_.rank_rules.empty()) {
    made.front().members.resize(paths.size());
    std::iota(made.front().members.begin(), made.front().members.end(), std::size_t{0});
    return made;
  }
  const auto rule_of = assign_rules(config_.rank_rules, paths, problems);
  for (std::size_t i = 0; i < rule_of.size(); ++i) {
    if (rule_of[i]) made[*rule_of[i]].members.push_back(i);
  }
  return made;
}

template <class Decompose>
auto FactorisePass::within_memory(const std::string& path, const Decompose& decompose) const {
  try {
    return decompose();
  } catch (const OutOfMemoryError& error) {
    const bool way_out = format_.randomises() && config_.singular_vectors == "full";
    throw error.at(str("layer '", path, '\'', way_out ? " (singular_vectors: randomised needs less)" : ""));
  }
}

struct FactorisePass::Model {
  std::unique_ptr<Module>& root;
  const Shape& input;
  const PassMeans& means;
};

std::vector<RankChoice> FactorisePass::choose_ranks(const Model& model, const RankConfig& ranks,
                                                    std::span<const RankLayer> layers, const Matched& matched, FixedCost fixed) {
  if (!ranks.latency || model.means.veto == nullptr) return select_ranks(ranks, layers, fixed);
  const std::string first = first_with_parameters(matched.trace);
  std::vector<TimedLayer> timed;
  for (const RankLayer& layer : layers) {
    const LayerCost& row = *std::ranges::find(matched.trace, layer.dense.path, &LayerCost::path);
    timed.push_back({layer, row.input, row.path == first});
  }
  LatencyRanks found =
      ranks_by_latency(ranks.latency->speedup, ranks.multiple_of, model.root, timed, model.input, *model.means.veto);
  latency_ = found.outcome;
  return std::move(found.choices);
}

std::vector<RankLayer> FactorisePass::held(const Matched& matched, const Group& group, FixedCost& fixed,
                                           std::vector<BlockProblem>& problems) {
  const RankConfig& ranks = *group.ranks;
  const auto cost_of = [&](const LayerCost& row) { return ranks.params ? row.parameters : row.macs; };
  for (const LayerCost& row : matched.trace) fixed.other += cost_of(row);
  std::vector<RankLayer> layers;
  for (const std::size_t i : group.members) {
    const LayerCost& row = matched.trace[matched.rows[i]];
    const DenseLayer& dense = matched.layers[i];
    const Format& form = form_of(dense);
    Planned& planned = plan_[row.path];
    planned.layer = dense;
    planned.asked = to_string(ranks);
    fixed.other -= cost_of(row);
    if (std::string reason = form.why_not(dense); !reason.empty()) {
      fixed.matched += cost_of(row);
      planned.choice.reason = std::move(reason);
      continue;
    }
    layers.push_back({.format = &form, .dense = dense});
    if (const std::string problem = why_not_ranks_of(form, ranks); !problem.empty()) {
      problems.push_back({group.key, str("layer '", dense.path, "': ", problem)});
    } else if (ranks.explicit_ranks.empty()) {
      layers.back().spectra = within_memory(dense.path, [&] { return form.spectra(weighted_weight(dense)); });
    }
  }
  return layers;
}

std::vector<RankLayer> FactorisePass::choose(const Model& model, const Matched& matched, const Group& group,
                                             std::vector<BlockProblem>& problems) {
  const RankConfig& ranks = *group.ranks;
  const std::size_t before = problems.size();
  FixedCost fixed;
  std::vector<RankLayer> layers = held(matched, group, fixed, problems);
  if (problems.size() > before) return {};
  const std::vector<RankProblem> illegal = explicit_rank_problems(ranks, layers);
  for (const RankProblem& problem : illegal) problems.push_back({str(group.key, '.', problem.rank), problem.message});
  if (!illegal.empty()) return layers;
  try {
    const std::vector<RankChoice> choices = choose_ranks(model, ranks, layers, matched, fixed);
    for (std::size_t i = 0; i < layers.size(); ++i) plan_[layers[i].dense.path].choice = choices[i];
  } catch (const ConfigError& error) {
    problems.push_back({group.key, error.what()});
  }
  return layers;
}

// Records what rules that are not in the block would choose. It is little work, because the spectra are already there.
void FactorisePass::compare(std::span<const RankLayer> layers, std::int64_t multiple_of) {
  std::vector<RankConfig> rules{{.params = 0.5}, {.macs = 0.5}, {.energy = 0.9}, {.error = 0.3}, {.vbmf = 1}};
  for (RankConfig& rule : rules) rule.multiple_of = multiple_of;
  for (const RankLayer& layer : layers) comparison_.layers.push_back(layer.dense.path);
  comparison_.rules = tessera::compare_rules(rules, layers);
}

void FactorisePass::take_settled(const Matched& matched, std::vector<BlockProblem>& problems) {
  const std::string from = str("from ", config_.from.value_or(""));
  for (const DenseLayer& layer : matched.layers) {
    const auto found = std::ranges::find(*settled_, layer.path, &LayerRanks::path);
    Planned& planned = plan_[layer.path];
    planned.layer = layer;
    planned.asked = from;
    if (found == settled_->end()) {
      planned.choice.reason = str("has no ranks ", from);
      continue;
    }
    for (const RankProblem& problem : form_of(layer).rank_problems(layer, found->ranks)) {
      problems.push_back({"from", str("layer '", layer.path, "': ", problem.message)});
    }
    planned.choice.ranks = found->ranks;
  }
  for (const LayerRanks& each : *settled_) {
    if (plan_.contains(each.path)) continue;
    problems.push_back(
        {"from", str("layer '", each.path, "' has ranks ", from, ", but another block made it something else since")});
  }
}

std::vector<BlockProblem> FactorisePass::try_prepare(std::unique_ptr<Module>& root, const Shape& input, const PassMeans& means) {
  plan_.clear();
  input_weights_.clear();
  comparison_ = {};
  latency_.reset();
  std::vector<BlockProblem> problems;
  const std::optional<Matched> matched = match(*root, input, problems);
  if (!matched) return problems;
  if (config_.weighted && means.batches != nullptr) {
    std::vector<std::string> paths;
    for (const DenseLayer& layer : matched->layers) {
      if (form_of(layer).why_not(layer).empty()) paths.push_back(layer.path);
    }
    input_weights_ = input_weights(*root, paths, *means.batches, kMomentBatches);
  }
  if (settled_) {
    take_settled(*matched, problems);
  } else {
    std::vector<RankLayer> with_spectra;
    std::int64_t multiple_of = 0;  // the largest that divides the multiples of all rules
    for (const Group& group : groups(*matched, problems)) {
      std::vector<RankLayer> layers = choose({root, input, means}, *matched, group, problems);
      if (means.veto != nullptr || !group.ranks->explicit_ranks.empty()) continue;  // only plans, without a clock, compare rules
      std::ranges::move(layers, std::back_inserter(with_spectra));
      multiple_of = std::gcd(multiple_of, group.ranks->multiple_of);
    }
    if (!with_spectra.empty()) compare(in_order_of(matched->trace, std::move(with_spectra)), multiple_of);
  }
  if (!problems.empty()) plan_.clear();
  return problems;
}

Tensor FactorisePass::weighted_weight(const DenseLayer& layer) const {
  const Tensor& weight = layer.weight();
  const auto found = input_weights_.find(layer.path);
  if (found == input_weights_.end()) return weight;
  return linalg::mode_product(weight.to(Device::cpu()).to(DType::f64), found->second.root, weight.rank() - 1);
}

Factors FactorisePass::project(const DenseLayer& layer, const Ranks& ranks) const {
  ProjectOptions options = config_.decomposition.value_or(ProjectOptions());
  options.randomised = config_.singular_vectors == "randomised";
  Factors factors = within_memory(layer.path, [&] { return form_of(layer).project(weighted_weight(layer), ranks, options); });
  const auto found = input_weights_.find(layer.path);
  if (found == input_weights_.end()) return factors;
  Tensor& first = *std::ranges::find_if(factors, &Tensor::defined);
  const Tensor rows = first.reshape({first.numel() / layer.in, layer.in});
  first = linalg::mode_product(rows, found->second.inverse, 1).reshape(first.shape());
  for (Tensor& factor : factors) {
    if (factor.defined()) factor = factor.to(layer.weight().dtype());
  }
  return factors;
}

std::vector<std::string> FactorisePass::data_keys() const {
  std::vector<std::string> keys;
  if (config_.weighted) keys.emplace_back("weighted");
  if (config_.recalibrate > 0) keys.emplace_back("recalibrate");
  return keys;
}

bool FactorisePass::matches(const std::string& path, const Module&) const { return plan_.find(path) != plan_.end(); }

std::unique_ptr<Module> FactorisePass::rewrite(const Module& module, LayerReport& report) const {
  const auto& [planned, choice, asked] = plan_.at(module.path());
  report.format = config_.format;
  report.ranks_asked = asked;
  report.reason = choice.reason;
  if (!choice.ranks) return nullptr;
  DenseLayer dense = planned;
  dense.module = &module;
  const Format& form = form_of(dense);
  const Tensor& weight = dense.weight();
  report.ranks = choice.ranks;
  if (values_ == Values::zeros) {
    TESSERA_CHECK(all_finite(weight), NumericError, "layer '", dense.path, "': the weight contains NaN or Inf");
    return form.layer(dense, *choice.ranks);
  }
  const Factors factors = project(dense, *choice.ranks);
  report.relative_error = linalg::relative_error(form.compose(factors, weight.shape()).to(weight.device()), weight);
  return form.layer(dense, *choice.ranks, &factors);
}

}  // namespace tessera
