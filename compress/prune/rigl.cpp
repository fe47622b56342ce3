#include "compress/prune/rigl.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>
#include <utility>

#include "compress/patterns/elements.h"
#include "compress/patterns/unstructured.h"
#include "compress/prune/scores.h"
#include "core/finite.h"
#include "core/nn/selector.h"
#include "core/rng.h"
#include "core/support/error.h"
#include "core/support/text.h"

namespace tessera {
namespace {

// A `prune` block for the same layers.
PruneConfig as_prune(const RiglConfig& config) {
  PruneConfig same;
  same.layers = config.layers;
  same.sparsity.target = config.sparsity;
  return same;
}

std::vector<PrunedWeight> weights_of(const RiglConfig& config, Module& model, std::vector<BlockProblem>& problems) {
  return pruned_weights(as_prune(config), model, problems);
}

std::vector<PrunedWeight> weights_or_throw(const RiglConfig& config, Module& model) {
  std::vector<BlockProblem> problems;
  std::vector<PrunedWeight> weights = weights_of(config, model, problems);
  TESSERA_CHECK(problems.empty(), ConfigError, "rigl: ", problems.front().key, ": ", problems.front().message);
  return weights;
}

std::int64_t in_steps(const Duration& duration, const StageLength& stage) {
  return std::max<std::int64_t>(1, duration.resolve(stage.steps_per_epoch, stage.steps));
}

Tensor best(const Tensor& scores, std::int64_t count) { return UnstructuredPattern().project({&scores, 1}, count).front(); }

void draw_masks(const RiglConfig& config, std::span<const PrunedWeight> weights, std::uint64_t seed) {
  for (const Budget& budget : budgets(config.scope, weights, config.sparsity)) {
    const PrunedWeight& weight = weights[budget.members.front()];
    if (weight.parameter->mask().defined()) continue;
    Tensor scores = Tensor::empty(weight.parameter->value().shape());
    fill_uniform(scores, RngStream(seed, weight.path, "rigl.mask"), 0, 1);
    weight.parameter->set_mask(best(scores, budget.kept));
  }
}

std::int64_t count_new(std::span<const std::uint8_t> before, std::span<const std::uint8_t> after) {
  std::int64_t count = 0;
  for (std::size_t i = 0; i < before.size(); ++i) count += before[i] < after[i] ? 1 : 0;
  return count;
}

}  // namespace

void RiglConfig::fields(Fields& f) {
  f.add("layers", layers,
        {.help = "selector of layers, or a list of selectors; all but the first convolution and the last linear layer",
         .example = "layer*.conv*",
         .observable = "bytes"});
  f.add("sparsity", sparsity,
        {.help = "fraction of the weights that is zero, throughout",
         .range = {.min = 0, .max = 1, .open_min = true, .open_max = true},
         .example = "0.9",
         .observable = "bytes",
         .required = sparsity == 0});
  f.add("scope", scope,
        {.help = "what has this sparsity: all layers together with densities by their shapes (erk), or each layer",
         .choices = {"erk", "layer"},
         .observable = "bytes"});
  f.add("every", every,
        {.help = "distance between two moves of the masks", .range = positive, .example = "50s", .observable = "bytes"});
  f.add("end", end,
        {.help = "of the moves: the masks stay from there on", .range = positive, .example = "60%", .observable = "bytes"});
  f.add("fraction", fraction,
        {.help =
             "of the kept weights that the first moves replace; it falls to 0 at the end by a cosine; 0 keeps the masks as drawn",
         .range = unit_interval,
         .example = "0.5",
         .observable = "bytes"});
  f.require(!layers || is_selector(*layers), "layers", "needs a selector or a list of selectors");
}

Rigl::Rigl(const RiglConfig& config, Module& model, const StageLength& stage, std::uint64_t seed)
    : config_(config),
      seed_(seed),
      every_(in_steps(config.every, stage)),
      end_(in_steps(config.end, stage)),
      weights_(weights_or_throw(config, model)) {
  for (const PrunedWeight& weight : weights_) gradients_.push_back(Tensor::empty_like(weight.parameter->value()));
}

void Rigl::on_stage_begin(Module& model) {
  tell_left_out(kName, as_prune(config_), model);
  draw_masks(config_, weights_, seed_);
}

void Rigl::on_step_begin(Module&, std::int64_t step, StepStateData&) { due_ = updates_after(step + 1); }

void Rigl::after_backward(Module&, const StepState& step) {
  if (!due_ && step.tensor().device().is_cpu()) return;
  for (std::size_t i = 0; i < weights_.size(); ++i) {
    const Tensor& gradient = weights_[i].parameter->grad();
    TESSERA_CHECK(gradient.defined(), InternalError, "rigl: ", weights_[i].path, " has no gradient");
    gradients_[i].copy_from(gradient);
  }
}

void Rigl::between_steps(Module&, std::int64_t steps_done) {
  if (!updates_after(steps_done)) return;
  // The step was skipped if gradients are not finite: they overflowed in f16.
  if (!std::ranges::all_of(gradients_, [](const Tensor& gradient) { return all_finite(gradient); })) return;
  const double way = static_cast<double>(steps_done) / static_cast<double>(end_);
  const double fraction = config_.fraction / 2 * (1 + std::cos(std::numbers::pi * way));
  std::int64_t moved = 0;
  for (std::size_t i = 0; i < weights_.size(); ++i) {
    const PrunedWeight& weight = weights_[i];
    const Tensor before = weight.parameter->mask().to(Device::cpu()).contiguous();
    const auto count = static_cast<std::int64_t>(fraction * static_cast<double>(weight.kept()));
    const Tensor after = moved_mask(weight, gradients_[i], count);
    moved += count_new(bits(before), bits(after));
    weight.parameter->set_mask(after);
  }
  Value update = Value::map();
  update.set("step", steps_done);
  update.set("fraction", fraction);
  update.set("moved", moved);
  Value row = Value::map();
  row.set("rigl", std::move(update));
  rows_.push_back(std::move(row));
}

void Rigl::on_stage_end(Module&) {
  for (const PrunedWeight& weight : weights_) hold_mask(*weight.parameter);
}

std::vector<Value> Rigl::take_rows() { return std::exchange(rows_, {}); }

void Rigl::load_state(const State&) {
  for (const PrunedWeight& weight : weights_) {
    TESSERA_CHECK(weight.parameter->mask().defined(), IoError, "rigl: ", weight.path, " has no mask in the saved state");
  }
}

std::string Rigl::summary() const {
  std::int64_t kept = 0, all = 0;
  for (const PrunedWeight& weight : weights_) {
    kept += weight.kept();
    all += weight.numel();
  }
  return str("sparsity ", formatted("%.4f", 1 - static_cast<double>(kept) / static_cast<double>(all)));
}

Tensor moved_mask(const PrunedWeight& weight, const Tensor& gradient, std::int64_t count) {
  const std::int64_t kept = weight.kept();
  count = std::min(count, weight.numel() - kept);
  const Tensor left = best(scores_of("magnitude", {&weight, 1}, {}).front(), kept - count);
  const Tensor scores = magnitudes(gradient);
  for (std::int64_t i = 0; i < scores.numel(); ++i) {
    if (bits(left)[static_cast<std::size_t>(i)] != 0) scores.data<float>()[i] = -1;
  }
  const Tensor grown = best(scores, count);
  std::ranges::transform(bits(left), bits(grown), bits(left).begin(), std::bit_or<std::uint8_t>());
  return left;
}

void draw_masks(const RiglConfig& config, Module& model, std::uint64_t seed) {
  std::vector<BlockProblem> problems;
  const std::vector<PrunedWeight> weights = weights_of(config, model, problems);
  if (problems.empty()) draw_masks(config, weights, seed);
}

std::vector<BlockProblem> rigl_problems(const RiglConfig& config, Module& model) {
  std::vector<BlockProblem> problems;
  const std::vector<PrunedWeight> weights = weights_of(config, model, problems);
  if (!problems.empty()) return problems;
  for (const Budget& budget : budgets(config.scope, weights, config.sparsity)) {
    const PrunedWeight& weight = weights[budget.members.front()];
    if (weight.parameter->mask().defined() || budget.kept < weight.numel()) return {};
  }
  return {{"sparsity", str("is ", shortest(config.sparsity), "; no layer has enough weights for one of them to be zero")}};
}

std::vector<BlockProblem> rigl_problems(const RiglConfig& config, const StageLength& stage) {
  const std::int64_t every = in_steps(config.every, stage), end = in_steps(config.end, stage);
  if (end > stage.steps) return {{"end", str("is step ", end, " of a stage of ", stage.steps)}};
  if (every < end) return {};
  return {{"every", str("is ", every, " steps; the moves end at step ", end, ": no mask would move")}};
}

}  // namespace tessera
