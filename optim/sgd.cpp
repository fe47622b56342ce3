#include "optim/sgd.h"

#include "core/device/dispatch.h"

namespace tessera {

void SgdConfig::fields(Fields& f) {
  f.add("lr", lr,
        {.help = "learning rate that schedules start from", .range = non_negative, .example = "0.05", .observable = "bytes"});
  f.add("momentum", momentum,
        {.help = "share of the last update that is kept",
         .range = {.min = 0, .max = 1, .open_max = true},
         .example = "0.8",
         .observable = "bytes"});
  f.add("nesterov", nesterov, {.help = "looks ahead along the momentum", .observable = "bytes"});
  f.add("weight_decay", weight_decay,
        {.help = "added to the gradient, times the weight", .range = non_negative, .example = "5.0e-4", .observable = "bytes"});
  f.add("decay_norm_bias", decay_norm_bias,
        {.help = "decays normalisation parameters, biases and embeddings too", .observable = "bytes"});
  f.require(!nesterov || momentum > 0, "nesterov", "needs momentum above 0");
}

Sgd::Sgd(const SgdConfig& config, const std::vector<NamedParameter>& parameters) : config_(config) { bind(parameters); }

Optimizer::Slots Sgd::fresh_slots(const Parameter& parameter) const {
  if (config_.momentum == 0) return {};
  const Tensor& value = parameter.value();
  return {{"momentum", Tensor::zeros(value.shape(), value.dtype(), value.device())}};
}

void Sgd::update(std::span<const Update> updates, const Tensor& step_state, const Tensor& norm) {
  std::vector<SgdOperands> all;
  all.reserve(updates.size());
  for (const Update& one : updates) {
    SgdOperands& operands = all.emplace_back(SgdOperands{one.operands, {}});
    operands.weight_decay = decay_for(one.parameter, config_.weight_decay, config_.decay_norm_bias);
    if (config_.momentum != 0) operands.momentum = one.slots.at("momentum");
  }
  const SgdRule rule{config_.momentum, config_.nesterov};
  TESSERA_DISPATCH(step_state.device(), sgd_update, all, step_state, rule, norm);
}

}  // namespace tessera
