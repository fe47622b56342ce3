#include "train/run/training_log.h"

#include <algorithm>
#include <utility>

#include "core/support/log.h"

namespace tessera {

void TrainingLog::on_stage_begin() {
  since_ = Clock::now();
  from_ = run_.state.position().stage_step;
}

void TrainingLog::on_step_end(const StepEnd& step) {
  tell_replay();
  const Position& position = run_.state.position();
  if (position.global_step % run_.config().log_every == 0 || step.epoch || step.last) log_interval();
  run_.records->log_rows(run_.stage().name, position.global_step, run_.state.trainer()->take_rows());
}

void TrainingLog::log_interval() {
  StageTrainer& trainer = *run_.state.trainer();
  run_.last_loss = trainer.take_mean_loss();
  trainer.check_finite();
  const Position& position = run_.state.position();
  run_.records->log_training(run_.stage().name, position.global_step, *run_.last_loss, trainer.last_lr(), samples_per_second());
  run_.write_status("training");
}

double TrainingLog::samples_per_second() {
  const Clock::time_point now = Clock::now();
  const std::int64_t step = run_.state.position().stage_step;
  const double samples = static_cast<double>((step - from_) * run_.config().data.batch);
  const double seconds = std::max(std::chrono::duration<double>(now - since_).count(), 1e-9);
  since_ = now;
  from_ = step;
  return samples / seconds;
}

// Reports once, because the first step asks for all choices that every step needs.
void TrainingLog::tell_replay() {
  const std::size_t given = std::exchange(run_.options.decisions, {}).size();
  if (given == 0) return;
  const DecisionLog& log = run_.decisions->log();
  run_.progress.line(str("decisions: ", log.replayed.size(), " of ", given, " recorded choices are used so far, ",
                         log.measured.size(), " were measured"));
  if (log.replayed.empty()) {
    log_warning(
        "decisions: none of the recorded choices was asked for; they are another network's, batch's, precision's or number "
        "of threads'");
  }
}

void ProgressLine::on_stage_begin() {
  const Task& task = run_.state.task();
  const std::int64_t units = run_.config().data.batch * task.units_per_sample(*run_.state.data().train.dataset);
  run_.progress.begin(run_.stage().name, run_.state.position().stage_step, run_.state.stage_steps(), units,
                      task.throughput_unit());
}

void ProgressLine::on_step_end(const StepEnd&) { run_.progress.step(run_.state.position().stage_step, run_.last_loss); }

}  // namespace tessera
