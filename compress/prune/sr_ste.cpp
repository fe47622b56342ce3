#include "compress/prune/sr_ste.h"

#include <algorithm>
#include <utility>

#include "compress/prune/prune.h"
#include "compress/prune/pruning_row.h"
#include "compress/prune/schedule.h"
#include "compress/prune/scores.h"
#include "core/device/dispatch.h"
#include "core/support/error.h"
#include "core/support/text.h"

namespace tessera {
namespace {

void hide(std::span<const SrSteOperands> operands, const NOfM& n_m) {
  if (!operands.empty()) TESSERA_DISPATCH(operands.front().weight.device(), sr_ste_hide, operands, n_m);
}

// W~ of a weight. The weight itself does not change.
Tensor hidden(const Tensor& weight, const NOfM& n_m) {
  const Tensor copy = weight.clone();
  const SrSteOperands operands{.weight = copy, .dense = Tensor::empty_like(copy), .gradient = {}};
  hide({&operands, 1}, n_m);
  return copy;
}

Tensor mask_of(const Tensor& weight, const NOfM& n_m) {
  const Tensor scores = magnitudes(weight);
  return NOfMPattern(n_m).project({&scores, 1}, weight.numel()).front();
}

NOfM n_m_of(const Value& text) {
  const std::optional<NOfM> n_m = text.is_string() ? parse_n_m(text.as_string()) : std::nullopt;
  TESSERA_CHECK(n_m, IoError, "prune: n_m of the saved state is ", to_json(text), "; must be N:M, such as 2:4");
  return *n_m;
}

}  // namespace

SrSte::SrSte(const PruneConfig& config, Module& model, const StageLength& stage, bool decoupled)
    : config_(config), n_m_(config.pattern.n_m_or_default()), decoupled_(decoupled), freeze_(freeze_step(*config.sr_ste, stage)) {
  for (PrunedWeight& weight : pruned_weights_or_throw(config, model)) {
    const Tensor dense = Tensor::empty_like(weight.parameter->value());
    layers_.push_back({.weight = std::move(weight), .dense = dense});
  }
}

void SrSte::on_stage_begin(Module& model) {
  const std::vector<BlockProblem> problems = mask_problems(config_, model);
  TESSERA_CHECK(problems.empty(), ConfigError, "prune: ", problems.front().key, ": ", problems.front().message);
  tell_left_out(kName, config_, model);
}

void SrSte::on_step_begin(Module&, std::int64_t, StepStateData&) {
  std::vector<SrSteOperands> operands;
  for (const Layer& layer : layers_) {
    if (!layer.frozen()) operands.push_back({layer.weight.parameter->value(), layer.dense, {}});
  }
  hide(operands, n_m_);
}

void SrSte::after_backward(Module&, const StepState& step) {
  std::vector<SrSteOperands> operands;
  for (const Layer& layer : layers_) {
    const Parameter& weight = *layer.weight.parameter;
    if (layer.frozen()) continue;
    TESSERA_CHECK(weight.grad().defined(), InternalError, "prune: ", layer.weight.path, " has no gradient");
    operands.push_back({weight.value(), layer.dense, weight.grad()});
  }
  if (operands.empty()) return;
  const double lambda = config_.sr_ste->lambda;
  const Device device = step.tensor().device();
  if (decoupled_) return TESSERA_DISPATCH(device, sr_ste_pull_weights, operands, step.tensor(), lambda);
  TESSERA_DISPATCH(device, sr_ste_pull, operands, lambda);
}

void SrSte::between_steps(Module&, std::int64_t steps_done) {
  if (steps_done != freeze_) return;
  for (const Layer& layer : layers_) {
    Parameter& weight = *layer.weight.parameter;
    weight.set_mask(mask_of(weight.value(), n_m_));
  }
  rows_.push_back(pruning_row(steps_done, n_m_.sparsity(), n_m_.sparsity()));
}

void SrSte::on_stage_end(Module&) {
  for (const Layer& layer : layers_) hold_mask(*layer.weight.parameter);
}

void SrSte::swap_evaluation_weights(Module&) {
  const bool back = !evaluated_.empty();
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    Parameter& weight = *layers_[i].weight.parameter;
    if (!back) evaluated_.push_back(weight.value());
    if (layers_[i].frozen()) continue;
    weight.set_value(back ? evaluated_[i] : hidden(weight.value(), n_m_));
  }
  if (back) evaluated_.clear();
}

std::vector<Value> SrSte::take_rows() { return std::exchange(rows_, {}); }

std::string SrSte::summary() const {
  const bool frozen = std::ranges::all_of(layers_, &Layer::frozen);
  return str(frozen ? "sparsity " : "forward's sparsity ", formatted("%.4f", n_m_.sparsity()));
}

State SrSte::state() const {
  State state;
  Value weights = Value::list();
  for (const Layer& layer : layers_) {
    if (!layer.frozen()) weights.as_list().emplace_back(layer.weight.path);
  }
  state.meta.set("n_m", str(n_m_.n, ':', n_m_.m));
  state.meta.set("hidden", std::move(weights));
  return state;
}

void SrSte::load_state(const State& state) {
  const Value* const n_m = state.meta.find("n_m");
  TESSERA_CHECK(n_m != nullptr, IoError, "prune: the saved state is not of sr_ste");
  const NOfM saved = n_m_of(*n_m);
  TESSERA_CHECK(saved.n == n_m_.n && saved.m == n_m_.m, IoError, "prune: the saved state is of another n_m");
}

void hide_as_evaluated(const State& hook, std::map<std::string, Tensor>& weights) {
  const Value* const names = hook.meta.find("hidden");
  if (names == nullptr) return;  // the state is that of a hook that keeps masks
  const NOfM n_m = n_m_of(hook.meta.at("n_m"));
  for (const Value& name : names->as_list()) {
    const auto found = weights.find(name.as_string());
    TESSERA_CHECK(found != weights.end() && found->second.numel() % n_m.m == 0, IoError, "prune: the saved state names '",
                  name.as_string(), "', which is no weight of the network");
    found->second = hidden(found->second.contiguous(), n_m);
  }
}

}  // namespace tessera
