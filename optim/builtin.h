// The `optimizer:` block and the optimiser it names.
#pragma once

#include <memory>
#include <variant>

#include "optim/adamw.h"
#include "optim/sgd.h"

namespace tessera {

struct OptimizerConfig {
  std::variant<SgdConfig, AdamWConfig> form;
  void fields(Fields& f) { f.choose("name", form, {.help = "the update rule", .observable = "bytes"}); }
  double lr() const;  // the base that schedules start from
  bool decouples_decay() const;  // whether weight decay leaves the gradients, and so the moments, alone
};

std::unique_ptr<Optimizer> make_optimizer(const OptimizerConfig& config, const std::vector<NamedParameter>& parameters);

}  // namespace tessera
