#include "train/plan/admm_plan.h"

#include "core/support/error.h"
#include "core/support/text.h"

namespace tessera {
namespace {

double exponent_of(const StageConfig& stage, const SgdConfig& sgd, const StageLength& length) {
  double sum = 0;
  for (std::int64_t step = 0; step < length.steps; ++step) {
    sum += rho_at(*stage.admm, step, length) * scheduled_lr(stage.training.schedule, sgd.lr, step, length);
  }
  return sum / (1 - sgd.momentum);
}

}  // namespace

void AdmmPlan::fields(Fields& f) {
  f.add("rho", rho, {.help = "of the first step"});
  f.add("updates", updates, {.help = "of the low-rank copies"});
  f.add("interval", interval, {.help = "steps between two updates"});
  f.add("exponent", exponent,
        {.help = "the residual falls by exp(-exponent); null where the optimiser is not sgd", .nullable = true});
}

std::optional<AdmmPlan> plan_admm(const StageConfig& stage, std::int64_t steps_per_epoch) {
  if (!stage.admm || !stage.train) return std::nullopt;
  const StageLength length = length_of(stage, steps_per_epoch);
  AdmmPlan plan{
      .rho = stage.admm->rho, .updates = update_count(*stage.admm, length), .interval = update_interval(*stage.admm, length)};
  if (const auto* const sgd = std::get_if<SgdConfig>(&stage.training.optimizer.form))
    plan.exponent = exponent_of(stage, *sgd, length);
  return plan;
}

std::string describe(const AdmmPlan& plan) {
  std::string text =
      str("admm: rho ", shortest(plan.rho), ", ", plan.updates, plan.updates == 1 ? " update after " : " updates, each after ",
          plan.interval, plan.interval == 1 ? " step; " : " steps; ");
  if (!plan.exponent) return text + "how far that takes the residual is known for sgd only";
  text += formatted("the residual falls by a factor of exp(-%.3g)", *plan.exponent);
  if (*plan.exponent < kWeakExponent) {
    text += formatted(
        "; below %g the weights hardly come to their low-rank copies: raise rho, the learning rate or the stage's length",
        kWeakExponent);
  }
  return text;
}

}  // namespace tessera
