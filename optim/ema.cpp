#include "optim/ema.h"

#include <algorithm>
#include <utility>

#include "core/device/dispatch.h"
#include "core/ops/where.h"
#include "core/support/error.h"
#include "optim/optimizer.h"

namespace tessera {

namespace {

std::map<std::string, Tensor> copies(Module& model) {
  std::map<std::string, Tensor> all;
  for (const NamedParameter& named : named_parameters(model)) all.emplace(named.path, named.parameter->value().clone());
  for (const NamedBuffer& named : named_buffers(model)) {
    if (is_floating(named.buffer->value.dtype())) all.emplace(named.path, named.buffer->value.clone());
  }
  return all;
}

}  // namespace

void EmaConfig::fields(Fields& f) {
  f.add("decay", decay,
        {.help = "share of the average that is kept at each step",
         .range = {.min = 0, .max = 1, .open_max = true},
         .example = "0.99",
         .observable = "bytes"});
  f.add("warmup", warmup,
        {.help = "after step t of a stage, from 0, at most (1 + t) / (10 + t) of the average is kept", .observable = "bytes"});
  f.add("statistics", statistics,
        {.help =
             "training batches from which batch norms take the statistics of averaged weights, before these are evaluated and at "
             "the stage's end; 0 averages the statistics as the weights",
         .range = at_least(0),
         .example = "20",
         .observable = "bytes"});
}

Ema::Ema(const EmaConfig& config, Module& model, StepSlots& slots)
    : config_(config), slot_(slots.add("ema.decay")), averages_(copies(model)) {}

void Ema::on_step_begin(Module&, std::int64_t step, StepStateData& data) {
  const auto t = static_cast<double>(step);
  data.slots[slot_] = config_.warmup ? std::min(config_.decay, (1 + t) / (10 + t)) : config_.decay;
}

void Ema::after_step(Module& model, const StepState& step) {
  TESSERA_CHECK(!swapped_, InternalError, "ema: a step while the averages are swapped in");
  std::vector<EmaOperands> all;
  all.reserve(averages_.size());
  for (const NamedParameter& named : named_parameters(model)) {
    const Tensor mask = named.parameter->mask().defined() ? named.parameter->mask().contiguous() : Tensor();
    all.push_back({averages_.at(named.path), named.parameter->value(), mask});
  }
  for (const NamedBuffer& named : named_buffers(model)) {
    const auto average = averages_.find(named.path);
    if (average != averages_.end()) all.push_back({average->second, named.buffer->value, {}});
  }
  TESSERA_DISPATCH(step.tensor().device(), ema_update, all, slot_, step.tensor());
}

void Ema::on_stage_end(Module& model) { swap(model); }

State Ema::state() const {
  TESSERA_CHECK(!swapped_, InternalError, "ema: state asked for while the averages are swapped in");
  State state;
  for (const auto& [path, average] : averages_) state.tensors.emplace(path, average.clone());
  return state;
}

void Ema::load_state(const State& state) {
  TESSERA_CHECK(!swapped_, InternalError, "ema: state loaded while the averages are swapped in");
  load_tensors(kName, state.tensors, averages_);
}

// Writes in place, because recorded steps hold the addresses of the averages.
void Ema::hold_masks(Module& model) {
  for (const NamedParameter& named : named_parameters(model)) {
    const Tensor& mask = named.parameter->mask();
    if (!mask.defined()) continue;
    Tensor& average = averages_.at(named.path);
    Tensor held = Tensor::empty_like(average);
    TESSERA_BACKEND(held.device(), where_backward, mask, average, false, held);
    average.copy_from(held);
  }
}

void Ema::swap(Module& model) {
  if (!swapped_) hold_masks(model);
  for (const NamedParameter& named : named_parameters(model)) {
    const Tensor value = named.parameter->value();
    named.parameter->set_value(std::exchange(averages_.at(named.path), value));
    named.parameter->zero_grad();
  }
  for (const NamedBuffer& named : named_buffers(model)) {
    const auto average = averages_.find(named.path);
    if (average != averages_.end()) std::swap(named.buffer->value, average->second);
  }
  swapped_ = !swapped_;
}

}  // namespace tessera
