#include "train/run/validation.h"

#include "core/support/text.h"

namespace tessera {

void Validation::on_step_end(const StepEnd& step) {
  if (!step.epoch && !step.last) return;
  RunState& state = run_.state;
  Position& position = state.position();
  const std::int64_t epoch = position.stage_step / state.steps_per_epoch();
  // A stage may end within an epoch.
  std::string text = str(run_.stage().name, step.epoch ? " epoch " : " step ", step.epoch ? epoch : position.stage_step);
  if (run_.last_loss) text += str("  loss ", *run_.last_loss);
  if (state.data().val.size() > 0) {
    const Evaluation result = evaluate_val();
    const Metric& metric = state.task().metrics().front();
    run_.records->log_evaluation(run_.stage().name, position.global_step, epoch, state.task(), result);
    run_.last_metric = Scored{std::string(metric.key), result.deciding()};
    if (!position.best || metric.better(result.deciding(), position.best->value)) {
      position.best = run_.last_metric;
      position.best_step = position.global_step;
    }
    for (std::size_t i = 0; i < result.metrics.size(); ++i) {
      const Metric& each = state.task().metrics()[i];
      text += str("  val ", each.key, ' ', text_of(each, result.metrics[i]));
    }
  }
  const StageTrainer& trainer = *state.trainer();
  if (const std::string hooks = trainer.hook_summary(); !hooks.empty()) {
    text +=
        str("  ", hooks, formatted(" (updates: %.1f %% of the time)", 100 * trainer.hook_seconds() / run_.progress.seconds()));
  }
  run_.progress.line(text + formatted("  %.0f ", run_.progress.units_per_second(position.stage_step)) +
                     std::string(state.task().throughput_unit()));
}

// The other ranks take part: they share the batches and the choices by a clock.
Evaluation Validation::evaluate_val() {
  const RankLeader::Together together(run_.leader);
  return run_.state.evaluate_val([this] { run_.leader.evaluated(); });
}

}  // namespace tessera
