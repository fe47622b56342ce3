#include "optim/adamw.h"

#include "core/device/dispatch.h"

namespace tessera {

void AdamWConfig::fields(Fields& f) {
  const Range below_one{.min = 0, .max = 1, .open_max = true};
  f.add("lr", lr,
        {.help = "learning rate that schedules start from", .range = non_negative, .example = "3.0e-4", .observable = "bytes"});
  f.add("beta1", beta1, {.help = "decay of the mean gradient", .range = below_one, .example = "0.8", .observable = "bytes"});
  f.add("beta2", beta2,
        {.help = "decay of the mean squared gradient", .range = below_one, .example = "0.99", .observable = "bytes"});
  f.add("eps", eps,
        {.help = "added to the root of the mean square", .range = positive, .example = "1.0e-6", .observable = "bytes"});
  f.add("weight_decay", weight_decay,
        {.help = "share of the weight taken away, times lr", .range = non_negative, .example = "0.05", .observable = "bytes"});
  f.add("decay_norm_bias", decay_norm_bias,
        {.help = "decays normalisation parameters, biases and embeddings too", .observable = "bytes"});
}

AdamW::AdamW(const AdamWConfig& config, const std::vector<NamedParameter>& parameters) : config_(config) { bind(parameters); }

Optimizer::Slots AdamW::fresh_slots(const Parameter& parameter) const {
  const Tensor& value = parameter.value();
  return {{"exp_avg", Tensor::zeros(value.shape(), value.dtype(), value.device())},
          {"exp_avg_sq", Tensor::zeros(value.shape(), value.dtype(), value.device())},
          {"updates", Tensor::zeros({1}, DType::i64, value.device())}};
}

void AdamW::update(std::span<const Update> updates, const Tensor& step_state, const Tensor& norm) {
  std::vector<AdamWOperands> all;
  all.reserve(updates.size());
  for (const Update& one : updates) {
    const Slots& slots = one.slots;
    AdamWOperands& operands =
        all.emplace_back(AdamWOperands{one.operands, slots.at("exp_avg"), slots.at("exp_avg_sq"), slots.at("updates")});
    operands.weight_decay = decay_for(one.parameter, config_.weight_decay, config_.decay_norm_bias);
  }
  const AdamWRule rule{config_.beta1, config_.beta2, config_.eps};
  TESSERA_DISPATCH(step_state.device(), adamw_update, all, step_state, rule, norm);
}

}  // namespace tessera
