// What ADMM can reach in a stage, before it is run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "train/experiment.h"

namespace tessera {

struct AdmmPlan {
  double rho = 0;  // of the first step
  std::int64_t updates = 0;
  std::int64_t interval = 0;  // steps between two updates
  // Under SGD, W - Z shrinks by a factor of exp(-exponent) over the stage, where the loss did not move the weights:
  // sum over steps of rho lr / (1 - momentum). With `balance`, rho is assumed not to change. Empty for other optimisers.
  std::optional<double> exponent = {};

  void fields(Fields& f);
};
inline constexpr double kWeakExponent = 4;  // a smaller one leaves 2 % of the distance or more

// Empty where the stage has no admm block, or does not train.
std::optional<AdmmPlan> plan_admm(const StageConfig& stage, std::int64_t steps_per_epoch);

// One or two sentences.
std::string describe(const AdmmPlan& plan);

}  // namespace tessera
