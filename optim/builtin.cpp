#include "optim/builtin.h"

namespace tessera {

namespace {

std::unique_ptr<Optimizer> make(const SgdConfig& config, const std::vector<NamedParameter>& parameters) {
  return std::make_unique<Sgd>(config, parameters);
}
std::unique_ptr<Optimizer> make(const AdamWConfig& config, const std::vector<NamedParameter>& parameters) {
  return std::make_unique<AdamW>(config, parameters);
}

}  // namespace

double OptimizerConfig::lr() const {
  return std::visit([](const auto& config) { return config.lr; }, form);
}

bool OptimizerConfig::decouples_decay() const {
  return std::visit([](const auto& config) { return config.kDecouplesDecay; }, form);
}

std::unique_ptr<Optimizer> make_optimizer(const OptimizerConfig& config, const std::vector<NamedParameter>& parameters) {
  return std::visit([&](const auto& chosen) { return make(chosen, parameters); }, config.form);
}

}  // namespace tessera
