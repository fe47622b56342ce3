#include "admm/admm.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "admm/projections.h"
#include "core/config/read.h"
#include "core/device/dispatch.h"
#include "core/linalg/relative_error.h"
#include "core/ops/arithmetic.h"
#include "core/support/error.h"
#include "core/support/log.h"
#include "core/support/text.h"

namespace tessera {
namespace {

// The settings that a fork in the middle of a stage may change.
Value asked_of(const AdmmConfig& config) {
  Value asked = Value::map();
  asked.set("rho", config.rho);
  if (config.rho_end) asked.set("rho_end", *config.rho_end);
  if (config.balance) asked.set("balance", write(*config.balance));
  return asked;
}

constexpr double kLeastNorm = 1e-30;  // far below any norm of trained weights; keeps the residual of a zero weight finite

std::string larger(double rho) { return formatted("%.3g", 10 * rho); }

}  // namespace

Admm::Admm(const AdmmConfig& config, std::vector<ConstrainedLayer> layers, Module& model, const StageLength& stage,
           StepSlots& slots, Communicator& ranks)
    : config_(config),
      stage_(stage),
      interval_(update_interval(config, stage)),
      slot_(slots.add("admm.rho")),
      rho_(config.rho),
      ranks_(ranks) {
  for (ConstrainedLayer& layer : layers) {
    Parameter& weight = find_module(model, layer.path).parameter("weight");
    const Tensor& value = weight.value();
    layers_.push_back({std::move(layer), &weight, Tensor::zeros(value.shape(), value.dtype(), value.device()),
                       Tensor::zeros(value.shape(), value.dtype(), value.device())});
  }
}

std::vector<Tensor> Admm::projected() const {
  const NoGrad no_grad;
  std::vector<ConstrainedLayer> constraints;
  std::vector<Tensor> sums;
  for (const Layer& layer : layers_) {
    constraints.push_back(layer.constrained);
    sums.push_back(add(Var(layer.weight->value()), Var(layer.u)).value());
  }
  return project_all(constraints, sums, ranks_);
}

void Admm::on_stage_begin(Module&) {
  const std::vector<Tensor> copies = projected();
  for (std::size_t i = 0; i < layers_.size(); ++i) layers_[i].z.copy_from(copies[i]);
}

void Admm::on_step_begin(Module&, std::int64_t, StepStateData& data) { data.slots[slot_] = rho_; }

void Admm::after_backward(Module&, const StepState& step) {
  std::vector<AdmmOperands> all;
  for (const Layer& layer : layers_) {
    const Parameter& weight = *layer.weight;
    if (weight.grad().defined()) all.push_back({weight.grad(), weight.value(), layer.z, layer.u});
  }
  if (!all.empty()) TESSERA_DISPATCH(step.tensor().device(), admm_pull, all, slot_, step.tensor());
}

void Admm::between_steps(Module&, std::int64_t steps_done) {
  if (stopped_ || layers_.empty()) return;
  history_.push_back(update(steps_done));
  rows_.push_back(history_.back());
  judge();
  if (!stopped_) change_rho();
}

Residuals Admm::update(std::int64_t steps_done) {
  const NoGrad no_grad;
  const std::vector<Tensor> copies = projected();
  Residuals now{.step = steps_done, .rho = rho_};
  double primal = 0, dual = 0;
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    Layer& layer = layers_[i];
    const Tensor& w = layer.weight->value();
    const double apart = linalg::distance(w, copies[i]);
    const double moved = rho_ * linalg::distance(copies[i], layer.z);
    primal += apart * apart;
    dual += moved * moved;
    const double relative = apart / std::max(linalg::norm(w), kLeastNorm);
    if (now.layer.empty() || relative > now.relative) {
      now.relative = relative;
      now.layer = layer.constrained.path;
    }
    layer.u.copy_from(add(Var(layer.u), sub(Var(w), Var(copies[i]))).value());
    layer.z.copy_from(copies[i]);
  }
  now.primal = std::sqrt(primal);
  now.dual = std::sqrt(dual);
  return now;
}

void Admm::judge() {
  const Residuals& now = history_.back();
  const Course course = course_of(history_);
  if (course == Course::diverged) {
    stopped_ = true;
    log_warning(str("admm: diverged at step ", now.step, " of the stage: layer '", now.layer, "' is ", shortest(now.relative),
                    " of its norm away from its copy; the copies are updated no more in this stage. With rho ", shortest(rho_),
                    " the weights do not follow them: try ", larger(rho_)));
  } else if (course == Course::stalled && !stalled_) {
    stalled_ = true;
    if (config_.balance) return;  // `balance` raises rho
    log_warning(str("admm: the residual has stopped falling: layer '", now.layer, "' is ", formatted("%.3g", now.relative),
                    " of its norm away from its copy, after ", history_.size(), " updates. rho ", shortest(rho_),
                    " is too small for the learning rate and the length of the stage: try ", larger(rho_)));
  }
}

void Admm::on_stage_end(Module&) {
  if (history_.empty() || stopped_ || !(history_.back().relative > kAgreement)) return;
  const Residuals& now = history_.back();
  log_warning(str("admm: the stage ends with layer '", now.layer, "' ", formatted("%.3g", now.relative),
                  " of its norm away from its copy, and ", config_.sparsity ? "pruning" : "factorising",
                  " it changes it by as much; a longer stage or a larger rho, say ", larger(rho_), ", brings it closer"));
}

void Admm::change_rho() {
  const Residuals& now = history_.back();
  if (config_.rho_end) {
    set_rho(rho_after(config_, std::ssize(history_), stage_));
  } else if (config_.balance && (now.primal > config_.balance->ratio * now.dual || course_of(history_) == Course::stalled)) {
    set_rho(rho_ * config_.balance->factor);
  } else if (config_.balance && !stalled_ && now.dual > config_.balance->ratio * now.primal) {
    set_rho(rho_ / config_.balance->factor);
  }
}

void Admm::set_rho(double rho) {
  if (rho == rho_) return;
  const NoGrad no_grad;
  for (const Layer& layer : layers_) layer.u.copy_from(mul_scalar(Var(layer.u), rho_ / rho).value());
  rho_ = rho;
}

std::vector<Value> Admm::take_rows() {
  std::vector<Value> rows;
  for (const Residuals& each : std::exchange(rows_, {})) {
    Value row = Value::map();
    row.set("admm", write(each));
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string Admm::summary() const {
  if (history_.empty()) return {};
  const Residuals& now = history_.back();
  return str("|W - Z| ", formatted("%.3g", now.relative), ", rho ", formatted("%.3g", rho_), stopped_ ? ", stopped" : "");
}

State Admm::state() const {
  State state;
  Value history = Value::list();
  for (const Residuals& each : history_) history.as_list().push_back(write(each));
  state.meta.set("rho", rho_);
  state.meta.set("asked", asked_of(config_));
  state.meta.set("stopped", stopped_);
  state.meta.set("stalled", stalled_);
  state.meta.set("history", std::move(history));
  for (const Layer& layer : layers_) {
    state.tensors.emplace("z." + layer.constrained.path, layer.z.clone());
    state.tensors.emplace("u." + layer.constrained.path, layer.u.clone());
  }
  return state;
}

void Admm::load_state(const State& state) {
  std::map<std::string, Tensor> own;
  for (const Layer& layer : layers_) {
    own.emplace("z." + layer.constrained.path, layer.z);
    own.emplace("u." + layer.constrained.path, layer.u);
  }
  load_tensors(kName, state.tensors, own);
  rho_ = state.meta.at("rho").as_double();
  stopped_ = state.meta.at("stopped").as_bool();
  stalled_ = state.meta.at("stalled").as_bool();
  history_.clear();
  for (const Value& each : state.meta.at("history").as_list()) history_.push_back(read<Residuals>(each));
  const Value& asked = state.meta.at("asked");
  if (asked == asked_of(config_)) return;
  // A fork that changes rho judges the residuals anew.
  stopped_ = stalled_ = false;
  const double before = asked.at("rho").as_double();
  set_rho(rho_ == before ? config_.rho : rho_ * (config_.rho / before));
}

}  // namespace tessera
