#include "train/run/session.h"

#include <algorithm>
#include <utility>

#include "compress/report.h"
#include "core/support/error.h"
#include "core/support/log.h"
#include "core/support/text.h"
#include "train/config/yaml.h"
#include "train/config/yaml_writer.h"
#include "train/run/compute_dtype.h"
#include "train/run/decisions_file.h"
#include "train/run/environment.h"
#include "train/run/kill_point.h"

namespace tessera {
Session::Session(Vfs& vfs, const ExperimentConfig& config, DataSplits data, RunFolder folder, SessionOptions options)
    : vfs_(vfs),
      folder_(std::move(folder)),
      options_(options),
      lock_(folder_.path()),
      saver_(vfs, folder_.checkpoints(), config.checkpoint, lock_),
      state_(config, std::move(data)),
      progress_(options.out, options.terminal, folder_.log()) {
  set_compute_threads(config.threads.compute);
  if (options_.profile_steps == 0) return;
  check_profiled(state_.device());
  const auto threads = static_cast<int>(resolve_compute_threads(config.threads.compute));
  profiler_ = std::make_unique<StepProfiler>(options_.profile_steps, measure_peaks(threads));
}

Session Session::start(Vfs& vfs, Experiment experiment, RunInputs inputs, const std::string& config_text, RunFolder folder,
                       SessionOptions options) {
  const std::string chosen = choice_of_device(experiment.config.device);
  settle_for_run(experiment.config);
  experiment.resolved = write(experiment.config);
  Session session(vfs, experiment.config, std::move(inputs.data), std::move(folder), options);
  const RunFolder& files = session.folder_;
  write_file_atomically(vfs, files.config(), config_text);
  write_file_atomically(vfs, files.environment(), to_json(describe_environment(experiment.config), 2) + "\n");
  session.decisions_ = decide_for_run(vfs, files.decisions(), session.options_.decisions, experiment.config.deterministic);
  if (!chosen.empty()) session.progress_.line(chosen);
  const std::string imported = inputs.initial.imported;
  session.state_.start(std::move(inputs.initial));
  session.open_records({});
  if (!imported.empty()) {
    session.progress_.line(imported);
    session.save();  // the run's own copy: nothing reads the imported file again
    session.finish_saving();  // before the folder counts as a run
  }
  write_file_atomically(vfs, files.resolved_config(), to_yaml(experiment.resolved));  // makes it a run that can be resumed
  return session;
}

Session Session::resume(Vfs& vfs, RunFolder folder, SessionOptions options) {
  const Experiment experiment = parse_experiment(load_yaml(folder.resolved_config()));
  static_cast<void>(compute_dtype_of(experiment.config));  // throws where the device is not there
  Session session(vfs, experiment.config, load_data(experiment.config.data, static_cast<std::uint64_t>(experiment.config.seed)),
                  std::move(folder), options);
  const RunFolder& files = session.folder_;
  for (const std::string& change : environment_changes(parse_json(vfs.read_file(files.environment()), files.environment()),
                                                       describe_environment(experiment.config))) {
    log_warning(str("resume: ", change, "; the same bytes as an uninterrupted run are not promised"));
  }
  RunHistory history;
  DecisionMap decisions;
  if (session.saver_.store().empty()) {
    const std::string& weights = experiment.config.model.weights;
    TESSERA_CHECK(weights.empty(), IoError, files.path(), ": its checkpoints are gone; resume does not read model.weights (",
                  weights, ") again, train a new run");
    decisions = surviving_decisions(vfs, files.decisions(), nullptr);
    session.state_.start(initial_model(vfs, experiment.config, session.state_.data()));
  } else {
    const Checkpoint checkpoint = session.saver_.store().load_latest();
    session.load(checkpoint);
    if (const Value* saved = checkpoint.manifest.find("history")) history = read<RunHistory>(*saved);
    decisions = surviving_decisions(vfs, files.decisions(), checkpoint.manifest.find("decisions"));
  }
  session.decisions_ = decide_for_run(vfs, files.decisions(), std::move(decisions), experiment.config.deterministic);
  session.open_records(std::move(history));
  return session;
}

void Session::open_records(RunHistory history) {
  records_ = std::make_unique<RunRecords>(vfs_, folder_, state_.position(), std::move(history));
  records_->write_layers();
  write_report();
}

void Session::write_report() { records_->write_report(config().name, config().seed); }

void Session::load(const Checkpoint& checkpoint) {
  for (const std::string& message : checkpoint.damaged) log_warning(str("passed over a damaged checkpoint: ", message));
  state_.load(checkpoint);
  const Position& position = state_.position();
  saver_.resumed_from(checkpoint, position);
  progress_.line(
      str("resuming at stage ", stage().name, ", step ", position.stage_step, " (global step ", position.global_step, ")"));
}

RunOutcome Session::run() {
  const Tf32Products products(takes_tf32(config()));
  try {
    write_status("training");  // a run that is killed before its first log line has a status too
    const std::int64_t before = state_.position().global_step;
    const RunOutcome outcome = run_stages();
    tell_missing_profile(before);
    return outcome;
  } catch (const std::exception& error) {
    progress_.line(str("failed: ", error.what()));
    write_failure();
    throw;
  }
}

void Session::write_failure() {
  const auto attempt = [](auto&& action) {
    try {
      action();
    } catch (const std::exception& error) {  // what ended the run is the error to report
      log_warning(error.what());
    }
  };
  attempt([&] { finish_saving(); });
  attempt([&] { write_status("failed"); });
}

RunOutcome Session::run_stages() {
  for (;; begin_next_stage()) {
    if (!state_.position().stage_done && run_stage() == RunOutcome::stopped) {
      write_status("stopped");
      return RunOutcome::stopped;
    }
    if (state_.at_last_stage()) break;
  }
  write_status("finished");
  return RunOutcome::finished;
}

void Session::begin_next_stage() {
  state_.next_stage();
  saver_.next_stage();
  last_loss_.reset();
  last_accuracy_.reset();
}

RunOutcome Session::run_stage() {
  try {
    prepare_stage();
  } catch (const Stopped&) {  // the pass begins again, with the times that it had recorded
    finish_saving();
    return RunOutcome::stopped;
  }
  if (stage().train && train_stage() == RunOutcome::stopped) return RunOutcome::stopped;
  end_stage();
  return RunOutcome::finished;
}

void Session::end_stage() {
  state_.end_stage();
  const Position& position = state_.position();
  StageRecord& record = records_->history().of(stage().name);
  record.done = true;
  record.steps = position.stage_step;
  record.end_step = position.global_step;
  if (stage().train) record.loss = last_loss_;
  if (stage().train && state_.data().val.size() > 0) {
    record.accuracy = last_accuracy_;
    record.best_accuracy = position.best_accuracy;
    record.best_step = position.best_step;
  }
  save();
  write_report();
}

RunOutcome Session::train_stage() {
  const std::int64_t total = state_.stage_steps();
  state_.begin_training();
  progress_.begin(stage().name, state_.position().stage_step, total, config().data.batch);
  if (profiler_) profiler_->begin_stage();
  try {
    const RunOutcome outcome = train_steps(total);
    write_profile();
    return outcome;
  } catch (const NumericError& error) {
    throw NumericError(explain(error.what()) + way_on(str("optimizer.lr=", stage().training.optimizer.lr() / 10)));
  } catch (const OutOfMemoryError& error) {
    throw OutOfMemoryError(error.what() + smaller_step(error));
  }
}

RunOutcome Session::train_steps(std::int64_t total) {
  while (state_.position().stage_step < total) {
    if (options_.stop.requested()) {
      save();
      finish_saving();
      return RunOutcome::stopped;
    }
    take_step();
    after_step(total);
    kill_point("step", state_.position().global_step);
  }
  return RunOutcome::finished;
}

// Once: its first step asks for all that every step needs.
void Session::tell_replay() {
  const std::size_t given = std::exchange(options_.decisions, {}).size();
  if (given == 0) return;
  const DecisionLog& log = decisions_->log();
  progress_.line(str("decisions: ", log.replayed.size(), " of ", given, " recorded choices are used so far, ",
                     log.measured.size(), " were measured"));
  if (log.replayed.empty()) {
    log_warning(
        "decisions: none of the recorded choices was asked for; they are another network's, batch's, precision's or number "
        "of threads'");
  }
}

void Session::after_step(std::int64_t total) {
  tell_replay();
  if (saver_.poll()) write_status("training");
  const Position& position = state_.position();
  const bool epoch_end = position.stage_step % state_.steps_per_epoch() == 0;
  const bool last = position.stage_step == total;
  if (position.global_step % config().log_every == 0 || last) log_interval();
  records_->log_rows(stage().name, position.global_step, state_.trainer()->take_rows());
  const bool improved = (epoch_end || last) && evaluate_epoch();
  progress_.step(position.stage_step, last_loss_.value_or(0.0));
  const CheckpointConfig& checkpoint = config().checkpoint;
  const std::int64_t every = std::max<std::int64_t>(1, checkpoint.every.resolve(state_.steps_per_epoch(), total));
  if (!last && (position.stage_step % every == 0 || (improved && checkpoint.best))) save();
}

void Session::log_interval() {
  StageTrainer& trainer = *state_.trainer();
  last_loss_ = trainer.take_mean_loss();
  trainer.check_finite();
  const Position& position = state_.position();
  records_->log_training(stage().name, position.global_step, *last_loss_, trainer.last_lr(),
                         progress_.samples_per_second(position.stage_step));
  write_status("training");
}

void Session::save() {
  Position& position = state_.position();
  if (saver_.holds(position)) return;
  if (state_.trainer()) state_.trainer()->check_finite();
  records_->sync(position);
  Value manifest = state_.manifest();
  manifest.set("history", write(records_->history()));
  manifest.set("decisions", to_value(decisions_->taken()));
  saver_.save(position, state_.parts(), manifest);
  write_status("training");
}

void Session::finish_saving() {
  if (saver_.finish()) write_status("training");
}

void Session::write_status(const std::string& state) {
  const Position& position = state_.position();
  RunStatus status;
  status.state = state;
  status.stage = stage().name;
  status.stage_step = position.stage_step;
  status.stage_steps = stage().train ? state_.stage_steps() : 0;
  status.global_step = position.global_step;
  status.loss = last_loss_.value_or(0.0);
  status.best_accuracy = position.best_accuracy;
  status.seconds_left = progress_.seconds_left(position.stage_step);
  status.last_checkpoint_step = saver_.last_step();
  status.last_checkpoint_time = saver_.last_time();
  records_->write_status(status);
}

}  // namespace tessera
