#include "compress/prune/prune.h"

#include <algorithm>
#include <utility>

#include "compress/patterns/builtin.h"
#include "compress/prune/scores.h"
#include "core/support/error.h"
#include "core/support/text.h"

namespace tessera {
namespace {

std::vector<PrunedWeight> weights_or_throw(const PruneConfig& config, Module& model) {
  std::vector<BlockProblem> problems;
  std::vector<PrunedWeight> weights = pruned_weights(config, model, problems);
  TESSERA_CHECK(problems.empty(), ConfigError, "prune: ", problems.front().key, ": ", problems.front().message);
  return weights;
}

// The scores of weights of as many outputs, side by side.
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

// Each member's part of a mask of joined scores.
void set_masks(const Tensor& mask, std::span<const PrunedWeight> weights, std::span<const std::size_t> members) {
  if (members.size() == 1) return weights[members[0]].parameter->set_mask(mask);
  const std::int64_t outputs = mask.dim(0);
  std::int64_t at = 0;
  for (const std::size_t i : members) {
    const std::int64_t own = weights[i].numel() / outputs;
    const Tensor part = mask.slice(1, at, at + own).contiguous();
    weights[i].parameter->set_mask(part.reshape(weights[i].parameter->value().shape()));
    at += own;
  }
}

// New masks of this sparsity, of which none brings back what was pruned.
void mask_weights(const PruneConfig& config, std::span<const PrunedWeight> weights, double sparsity, std::uint64_t seed) {
  const std::vector<Tensor> scores = scores_of(config.score, weights, seed);
  const std::unique_ptr<const Pattern> pattern = make_pattern(config.pattern);
  const std::vector<std::vector<std::size_t>> sets = coupled_weights(weights);
  for (const Budget& budget : coupled_budgets(budgets(config.scope, weights, sparsity), sets)) {
    std::vector<Tensor> together;
    std::int64_t present = 0;
    for (const std::size_t set : budget.members) {
      together.push_back(joined(scores, sets[set]));
      for (const std::size_t i : sets[set]) present += weights[i].kept();
    }
    const std::vector<Tensor> masks = pattern->project(together, std::min(budget.kept, present));
    for (std::size_t k = 0; k < masks.size(); ++k) set_masks(masks[k], weights, sets[budget.members[k]]);
  }
  mask_followers(weights);
}

}  // namespace

Prune::Prune(const PruneConfig& config, Module& model, const StageLength& stage, std::uint64_t seed)
    : config_(config),
      stage_(stage),
      seed_(seed),
      weights_(weights_or_throw(config, model)),
      steps_(pruning_steps(config.sparsity, stage)),
      initial_(sparsity()) {}

double Prune::sparsity() const {
  std::int64_t kept = 0, all = 0;
  for (const PrunedWeight& weight : weights_) {
    kept += weight.kept();
    all += weight.numel();
  }
  return 1 - static_cast<double>(kept) / static_cast<double>(all);
}

void Prune::on_stage_begin(Module& model) {
  initial_ = sparsity();
  TESSERA_CHECK(initial_ < config_.sparsity.target, ConfigError, "prune: ", shortest(initial_),
                " of these weights are zero already; sparsity.target ", shortest(config_.sparsity.target),
                " would prune nothing");
  between_steps(model, 0);
}

void Prune::between_steps(Module&, std::int64_t steps_done) {
  if (std::ranges::binary_search(steps_, steps_done)) prune(steps_done);
}

void Prune::prune(std::int64_t step) {
  const double asked = sparsity_after(config_.sparsity, stage_, step, initial_);
  mask_weights(config_, weights_, asked, seed_);
  add_row(step, asked);
}

void Prune::add_row(std::int64_t step, double asked) {
  Value pruning = Value::map();
  pruning.set("step", step);
  pruning.set("asked", asked);
  pruning.set("sparsity", sparsity());
  Value row = Value::map();
  row.set("prune", std::move(pruning));
  rows_.push_back(std::move(row));
}

std::vector<Value> Prune::take_rows() { return std::exchange(rows_, {}); }

std::string Prune::summary() const { return str("sparsity ", formatted("%.4f", sparsity())); }

State Prune::state() const {
  State state;
  state.meta.set("initial", initial_);
  return state;
}

void Prune::load_state(const State& state) {
  const Value* const initial = state.meta.find("initial");
  TESSERA_CHECK(initial != nullptr && state.tensors.empty(), IoError, "prune: the saved state is not of a prune block");
  initial_ = initial->as_double();
}

void prune_to_target(const PruneConfig& config, Module& model) {
  std::vector<BlockProblem> problems;
  const std::vector<PrunedWeight> weights = pruned_weights(config, model, problems);
  if (problems.empty()) mask_weights(config, weights, config.sparsity.target, 0);
}

std::vector<BlockProblem> schedule_problems(const PruneConfig& config, const StageLength& stage) {
  std::vector<BlockProblem> problems;
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
