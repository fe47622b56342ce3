#include "compress/prune/prune.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "compress/patterns/builtin.h"
#include "compress/patterns/tile_element.h"
#include "compress/prune/pruning_row.h"
#include "compress/prune/scores.h"
#include "core/support/error.h"
#include "core/support/text.h"

namespace tessera {
namespace {

// Joins the scores of weights with equally many outputs, side by side.
Tensor joined(std::span<const Tensor> scores, std::span<const std::size_t> members) {
  if (members.size() == 1) return scores[members[0]];
  const std::int64_t outputs = scores[members[0]].dim(0);
  std::int64_t width = 0;
  for (const std::size_t i : members) width += scores[i].numel() / outputs;
  const Tensor all = Tensor::empty({outputs, width});
  std::int64_t at = 0;
  for (const std::size_t i : members) {
    const std::int64_t own = scores[i].numel() / outputs;
    all.slice(1, at, at + own).copy_from(scores[i].reshape({outputs, own}));
    at += own;
  }
  return all;
}

// If everything is kept, a weight without a mask does not get one.
void set_mask(const PrunedWeight& weight, const Tensor& mask) {
  if (weight.parameter->mask().defined() || kept_elements(mask) < weight.numel()) weight.parameter->set_mask(mask);
}

// Splits a mask of joined scores and gives each member its part.
void set_masks(const Tensor& mask, std::span<const PrunedWeight> weights, std::span<const std::size_t> members) {
  if (members.size() == 1) return set_mask(weights[members[0]], mask);
  const std::int64_t outputs = mask.dim(0);
  std::int64_t at = 0;
  for (const std::size_t i : members) {
    const std::int64_t own = weights[i].numel() / outputs;
    const Tensor part = mask.slice(1, at, at + own).contiguous();
    set_mask(weights[i], part.reshape(weights[i].parameter->value().shape()));
    at += own;
  }
}

// A group of weights with one common budget: sets of coupled weights, how many of their elements these sparsities keep, and how
// many are present. Scopes over all weights together have one sparsity.
struct Share {
  std::vector<std::vector<std::size_t>> sets;
  std::int64_t kept = 0;
  std::int64_t present = 0;
};

std::vector<Share> shares(const PruneConfig& config, std::span<const PrunedWeight> weights, std::span<const double> sparsities) {
  const std::vector<Budget> each =
      config.scope == "layer" ? layer_budgets(weights, sparsities) : budgets(config.scope, weights, sparsities.front());
  const std::vector<std::vector<std::size_t>> sets = coupled_weights(weights);
  std::vector<Share> all;
  for (const Budget& budget : coupled_budgets(each, sets)) {
    Share& share = all.emplace_back(Share{.sets = {}, .kept = budget.kept});
    for (const std::size_t set : budget.members) {
      share.sets.push_back(sets[set]);
      for (const std::size_t i : sets[set]) share.present += weights[i].kept();
    }
  }
  return all;
}

// Sets a new mask for each weight, by these sparsities and scores. No mask brings back elements that were pruned before.
void mask_weights(const PruneConfig& config, std::span<const PrunedWeight> weights, std::span<const double> sparsities,
                  std::span<const Tensor> scores) {
  const std::unique_ptr<const Pattern> pattern = make_pattern(config.pattern);
  for (const Share& share : shares(config, weights, sparsities)) {
    std::vector<Tensor> together;
    for (const std::vector<std::size_t>& set : share.sets) together.push_back(joined(scores, set));
    const std::vector<Tensor> masks = pattern->project(together, std::min(share.kept, share.present));
    for (std::size_t k = 0; k < masks.size(); ++k) set_masks(masks[k], weights, share.sets[k]);
  }
  mask_followers(weights);
}

double own_sparsity(const PrunedWeight& weight) {
  return 1 - static_cast<double>(weight.kept()) / static_cast<double>(weight.numel());
}

// The mean over all weights, by their numbers of elements.
double mean(std::span<const PrunedWeight> weights, std::span<const double> sparsities) {
  if (std::ranges::adjacent_find(sparsities, std::not_equal_to()) == sparsities.end()) return sparsities.front();
  double zeros = 0, all = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    zeros += sparsities[i] * static_cast<double>(weights[i].numel());
    all += static_cast<double>(weights[i].numel());
  }
  return zeros / all;
}

double sparsity_of(std::span<const PrunedWeight> weights) {
  std::int64_t kept = 0, all = 0;
  for (const PrunedWeight& weight : weights) {
    kept += weight.kept();
    all += weight.numel();
  }
  return 1 - static_cast<double>(kept) / static_cast<double>(all);
}

std::vector<double> targets_of(std::span<const PrunedWeight> weights) {
  std::vector<double> targets;
  for (const PrunedWeight& weight : weights) targets.push_back(weight.target);
  return targets;
}

// Whether more elements are present than the shares keep. For `erk` this is counted over all weights together, because what each
// weight keeps depends on the sparsity of all.
bool would_prune(const PruneConfig& config, std::span<const Share> shares) {
  std::int64_t excess = 0;
  bool any = false;
  for (const Share& share : shares) {
    any = any || share.present > share.kept;
    excess += share.present - share.kept;
  }
  return config.scope == "layer" ? any : excess > 0;
}

// Removes the shares that the pattern can prune nothing of, whatever sparsity is asked for.
void drop_kept_in_any_case(const PruneConfig& config, std::span<const PrunedWeight> weights, std::vector<Share>& shares) {
  const std::unique_ptr<const Pattern> pattern = make_pattern(config.pattern);
  std::erase_if(shares, [&](const Share& share) {
    std::vector<Shape> shapes;
    for (const std::vector<std::size_t>& set : share.sets) {
      for (const std::size_t i : set) shapes.push_back(weights[i].parameter->value().shape());
    }
    return pattern->keeps_all(shapes);
  });
}

// Says which weight, if any, has such a low density that single elements of tile_element would be all it keeps.
std::string why_no_tiles(const PruneConfig& config, std::span<const PrunedWeight> weights, std::span<const Share> shares) {
  if (config.pattern.pattern != TileElementPattern::kName || config.scope != "erk") return "";
  for (const Share& share : shares) {
    const PrunedWeight& weight = weights[share.sets.front().front()];
    const double density = static_cast<double>(share.kept) / static_cast<double>(weight.numel());
    if (density > config.pattern.extra_or_default()) continue;
    return str("is ", shortest(config.pattern.extra_or_default()), "; scope: erk gives ", weight.path, " a density of ",
               formatted("%.3g", density), ", which leaves it no tile");
  }
  return "";
}

}  // namespace

Prune::Prune(const PruneConfig& config, Module& model, const StageLength& stage, Sources sources)
    : config_(config),
      stage_(stage),
      sources_(std::move(sources)),
      weights_(pruned_weights_or_throw(config, model)),
      steps_(pruning_steps(config.sparsity, stage)),
      initial_(initial_sparsities()) {}

std::vector<double> Prune::initial_sparsities() const {
  if (config_.scope != "layer") return std::vector<double>(weights_.size(), sparsity());
  std::vector<double> each;
  for (const PrunedWeight& weight : weights_) each.push_back(own_sparsity(weight));
  return each;
}

double Prune::sparsity() const { return sparsity_of(weights_); }

void Prune::on_stage_begin(Module& model) {
  const std::vector<BlockProblem> problems = mask_problems(config_, model);
  TESSERA_CHECK(problems.empty(), ConfigError, "prune: ", problems.front().key, ": ", problems.front().message);
  initial_ = initial_sparsities();
  tell_left_out(kName, config_, model);
  between_steps(model, 0);
}

void Prune::between_steps(Module&, std::int64_t steps_done) {
  if (std::ranges::binary_search(steps_, steps_done)) prune(steps_done);
}

void Prune::on_stage_end(Module&) {
  for (const PrunedWeight& weight : weights_) {
    hold_mask(*weight.parameter);
    for (Parameter* const follower : weight.followers) hold_mask(*follower);
  }
}

void Prune::prune(std::int64_t step) {
  std::vector<double> asked;
  for (std::size_t i = 0; i < weights_.size(); ++i) {
    asked.push_back(sparsity_after(config_.sparsity, stage_, step, {.initial = initial_[i], .target = weights_[i].target}));
  }
  const std::int64_t batches = config_.score_batches_or_default();
  const ScoreSources sources{.seed = sources_.seed, .gradients = sources_.gradients, .first = step * batches, .batches = batches};
  mask_weights(config_, weights_, asked, scores_of(config_.score, weights_, sources));
  rows_.push_back(pruning_row(step, mean(weights_, asked), sparsity()));
}

std::vector<Value> Prune::take_rows() { return std::exchange(rows_, {}); }

std::string Prune::summary() const { return str("sparsity ", formatted("%.4f", sparsity())); }

State Prune::state() const {
  State state;
  Value initial = Value::list();
  for (const double each : initial_) initial.as_list().emplace_back(each);
  state.meta.set("initial", std::move(initial));
  return state;
}

void Prune::load_state(const State& state) {
  const Value* const initial = state.meta.find("initial");
  TESSERA_CHECK(initial != nullptr && initial->is_list() && initial->as_list().size() == weights_.size() && state.tensors.empty(),
                IoError, "prune: the saved state is not of ", weights_.size(), " weights, which this prune block has");
  std::ranges::transform(initial->as_list(), initial_.begin(), [](const Value& each) { return each.as_double(); });
}

void prune_to_target(const PruneConfig& config, Module& model) {
  std::vector<BlockProblem> problems;
  const std::vector<PrunedWeight> weights = pruned_weights(config, model, problems);
  if (!problems.empty()) return;
  const std::string score = config.score == "taylor" ? "magnitude" : config.score;
  mask_weights(config, weights, targets_of(weights), scores_of(score, weights, {}));
}

std::vector<BlockProblem> mask_problems(const PruneConfig& config, Module& model) {
  std::vector<BlockProblem> unfit;
  const std::vector<PrunedWeight> weights = pruned_weights(config, model, unfit);
  if (!unfit.empty() || weights.empty()) return {};
  if (config.sr_ste) {
    const auto masked = std::ranges::find_if(weights, [](const PrunedWeight& w) { return w.parameter->mask().defined(); });
    if (masked == weights.end()) return {};
    return {{"sr_ste", str("trains dense weights; ", masked->path, " has a mask of an earlier stage")}};
  }
  const std::vector<double> targets = targets_of(weights);
  std::vector<Share> asked_shares = shares(config, weights, targets);
  if (const std::string reason = why_no_tiles(config, weights, asked_shares); !reason.empty()) return {{"extra", reason}};
  const bool asks_for_less = would_prune(config, asked_shares);
  drop_kept_in_any_case(config, weights, asked_shares);
  if (would_prune(config, asked_shares)) return {};
  const char* const key = config.sparsity.targets.empty() ? "sparsity.target" : "sparsity.targets";
  if (asks_for_less) {
    return {{key, str("pattern ", config.pattern.pattern,
                      " keeps one of its units in any case, and these weights have no other: "
                      "nothing would be pruned")}};
  }
  const std::string asked = shortest(mean(weights, targets)), now = formatted("%.4g", sparsity_of(weights));
  if (config.sparsity.targets.empty()) {
    return {{key, str("is ", asked, "; ", now, " of these weights are zero already, so nothing would be pruned")}};
  }
  return {{key, str("the targets make ", asked, " of all these weights zero; ", now,
                    " are zero already, so nothing would be pruned")}};
}

std::vector<BlockProblem> schedule_problems(const PruneConfig& config, const StageLength& stage) {
  std::vector<BlockProblem> problems;
  if (config.sr_ste) {
    const std::int64_t freeze = freeze_step(*config.sr_ste, stage);
    if (freeze <= stage.steps) return problems;
    return {{"sr_ste.freeze", str("is step ", freeze, " of a stage of ", stage.steps, "; the weights would stay dense")}};
  }
  const SparsityConfig& sparsity = config.sparsity;
  const std::vector<std::int64_t> steps = pruning_steps(sparsity, stage);
  if (steps.empty()) {
    problems.push_back({"sparsity.end", "is before begin; nothing would be pruned"});
  } else if (steps.back() > stage.steps) {
    problems.push_back({sparsity.schedule == "one_shot" ? "sparsity.begin" : "sparsity.end",
                        str("is step ", steps.back(), " of a stage of ", stage.steps, "; the target would not be met")});
  } else if (sparsity.schedule != "one_shot" && steps.size() == 1) {
    problems.push_back({"sparsity.end", "is begin; schedule: one_shot prunes once"});
  }
  return problems;
}

}  // namespace tessera
