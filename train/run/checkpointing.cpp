#include "train/run/checkpointing.h"

#include <algorithm>

#include "layers/weight_count.h"

namespace tessera {

void Checkpointing::on_step_end(const StepEnd& step) {
  const CheckpointConfig& checkpoint = run_.config().checkpoint;
  const std::int64_t every = std::max<std::int64_t>(1, checkpoint.every.resolve(run_.state.steps_per_epoch(), step.stage_steps));
  const Position& position = run_.state.position();
  const bool best = checkpoint.best && position.best_step == position.global_step;
  const bool due = position.stage_step % every == 0 || best;
  if (!step.last && due) run_.save();
}

void Checkpointing::on_stage_end() {
  const Position& position = run_.state.position();
  const bool trains = run_.stage().train.has_value();
  StageRecord& record = run_.records->history().of(run_.stage().name);
  record.done = true;
  record.steps = position.stage_step;
  record.end_step = position.global_step;
  const double sparsity = count_weights(run_.state.model()).sparsity();
  if (sparsity > 0) record.sparsity = sparsity;
  if (trains) record.loss = run_.last_loss;
  if (trains && run_.state.data().val.size() > 0) {
    record.last = run_.last_metric;
    record.best = position.best;
    record.best_step = position.best_step;
  }
  run_.save();
  run_.write_report();
}

void Checkpointing::on_stop() {
  run_.save();
  run_.finish_saving();
}

}  // namespace tessera
