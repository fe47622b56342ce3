#include "train/run/session.h"

#include <algorithm>
#include <utility>

#include "core/support/error.h"
#include "core/support/log.h"
#include "layers/batch_norm.h"
#include "train/checkpoint/kill_point.h"
#include "train/config/yaml.h"
#include "train/config/yaml_writer.h"
#include "train/run/broken_images.h"
#include "train/run/compute_dtype.h"
#include "train/run/decisions_file.h"
#include "train/run/environment.h"
#include "train/run/failure_advice.h"
#include "train/run/stage_preparation.h"
#include "train/tasks/builtin.h"

namespace tessera {
namespace {

// Must not throw, because another error is being reported.
void leave_failed(RunContext& run, const std::string& what) {
  run.progress.line("failed: " + what);
  const auto attempt = [](auto&& action) {
    try {
      action();
    } catch (const std::exception& error) {  // the error that ended the run is the one to report
      log_warning(error.what());
    }
  };
  attempt([&] { run.finish_saving(); });
  attempt([&] { run.write_status("failed"); });
}

bool normalises_batches(Module& network) {
  bool found = false;
  for_each_module(network, [&](const Module& module) { found = found || dynamic_cast<const BatchNorm*>(&module) != nullptr; });
  return found;
}

// Whether the network uses dropout, as a layer or inside attention.
bool drops_out(Module& network) {
  bool found = false;
  for_each_module(network, [&](const Module& module) {
    const char* const key = module.kind() == "dropout" ? "p" : module.kind() == "self_attention" ? "dropout" : nullptr;
    const Value config = key != nullptr ? module.config() : Value();
    const Value* const rate = key != nullptr ? config.find(key) : nullptr;
    found = found || (rate != nullptr && rate->as_double() > 0);
  });
  return found;
}

bool is_of_ranks(const std::string& change) { return change.starts_with("ranks "); }

// Reports a change of a resumed run's environment.
void tell_change(RunContext& run, const std::string& change, const std::string& what_changes = "") {
  const std::string told = str("resume: ", change, "; the same bytes as an uninterrupted run are not promised", what_changes);
  log_warning(told);
  run.progress.record(told);
}

// Reports the changes with which the run was resumed before, except those that were reported just now.
void tell_earlier_changes(RunContext& run, const Checkpoint& checkpoint) {
  const Value* const earlier = checkpoint.manifest.find("changes");
  if (earlier == nullptr) return;
  for (const Value& change : earlier->as_list()) {
    if (std::ranges::find(run.changes, change.as_string()) != run.changes.end()) continue;
    tell_change(run, str("an earlier one found that ", change.as_string()));
    run.changes.push_back(change.as_string());
  }
}

// Describes what another number of ranks changes. The network must be loaded.
std::string in_words(const RunContext& run) {
  std::string words = "; gradients are added up in another order";
  const auto any_stage = [&](auto&& is) {
    return std::ranges::any_of(run.config().stages, [&](const StageConfig& stage) { return stage.train && is(stage.training); });
  };
  const bool of_shares = any_stage([](const TrainingConfig& training) { return !training.micro_batch; });
  const bool norms_of_shares = any_stage(
      [](const TrainingConfig& training) { return !training.micro_batch && !training.sync_batch_norm.value_or(false); });
  if (norms_of_shares && normalises_batches(run.state.model())) {
    words += str(", and batch norms normalise over ", run.config().data.batch / run.options.ranks->size(), " samples at a time");
  }
  if (of_shares && drops_out(run.state.model())) words += "; dropout draws other masks";
  if (of_shares && task_of(run.config().data).targets_vary()) {
    words += "; the loss weighs the shares of the ranks alike, however many targets each has";
  }
  if (any_stage([](const TrainingConfig& training) { return training.power_sgd.has_value(); })) {
    words += "; rank 0 goes on with the sum of what compressed gradients have left out";
  }
  words += str("; threads.compute is ", run.config().threads.compute,
               " in each process, and resume RUN threads.compute=... changes it");
  return words;
}

Value environment_of(const RunContext& run) { return describe_environment(run.config(), run.options.ranks->size()); }

std::unique_ptr<DecisionScope> decisions_of(RunContext& run, DecisionMap known) {
  return decide_for_run(
      run.vfs, run.folder.decisions(), std::move(known), run.config().deterministic,
      [&leader = run.leader](const std::string& key, const std::string& choice) { leader.measured(key, choice); });
}

void load(RunContext& run, const Checkpoint& checkpoint, const RunHistory& history) {
  for (const std::string& message : checkpoint.damaged) log_warning(str("passed over a damaged checkpoint: ", message));
  run.state.load(checkpoint);
  const Position& position = run.state.position();
  run.saver.resumed_from(checkpoint, position, history);
  const bool finished = run.state.finished();
  if (finished && !history.stages.empty()) run.last_loss = history.stages.back().loss;
  run.progress.line(str("resuming at stage ", run.stage().name, ", step ", position.stage_step, " (global step ",
                        position.global_step, ')', finished ? ": it was finished, nothing is left to do" : ""));
}

}  // namespace

Session::Session(Vfs& vfs, const ExperimentConfig& config, DataSplits data, RunFolder folder, SessionOptions options)
    : run_(std::make_unique<RunContext>(vfs, config, std::move(data), std::move(folder), std::move(options))) {
  set_compute_threads(config.threads.compute);
  profiling_ = std::make_unique<Profiling>(*run_);
  observers_ = make_observers(*run_);
}

Session Session::start(Vfs& vfs, Experiment experiment, RunInputs inputs, const std::string& config_text, RunFolder folder,
                       SessionOptions options) {
  refuse_for_ranks(*options.ranks, experiment.config);
  const std::string chosen = choice_of_device(experiment.config.device);
  if (experiment.config.threads.compute == 0) experiment.config.threads.compute = RankLeader(*options.ranks).compute_threads();
  settle_for_run(experiment.config);
  experiment.resolved = write(experiment.config);
  Session session(vfs, experiment.config, std::move(inputs.data), std::move(folder), std::move(options));
  RunContext& run = *session.run_;
  run.leader.begin(run.state, experiment.resolved, run.folder);
  write_file_atomically(vfs, run.folder.config(), config_text);
  write_file_atomically(vfs, run.folder.environment(), to_json(environment_of(run), 2) + "\n");
  run.decisions = decisions_of(run, run.options.decisions);
  if (!chosen.empty()) run.progress.line(chosen);
  const std::string imported = inputs.initial.imported;
  run.state.start(std::move(inputs.initial));
  run.open_records({});
  if (!imported.empty()) {
    run.progress.line(imported);
    run.save();  // the run has its own copy; nothing reads the imported file again
    run.finish_saving();  // before the folder counts as a run
  }
  write_file_atomically(vfs, run.folder.resolved_config(), to_yaml(experiment.resolved));  // makes it a run that can be resumed
  return session;
}

Session Session::resume(Vfs& vfs, RunFolder folder, SessionOptions options) {
  const Experiment experiment = parse_experiment(load_yaml(folder.resolved_config()));
  static_cast<void>(compute_dtype_of(experiment.config));  // throws if the device is absent
  try {
    return go_on(vfs, experiment, folder, std::move(options));
  } catch (const IoError& error) {
    throw IoError(error.what() + changed_images(vfs, folder, experiment.config));
  }
}

Session Session::go_on(Vfs& vfs, const Experiment& experiment, RunFolder folder, SessionOptions options) {
  refuse_for_ranks(*options.ranks, experiment.config);
  Session session(vfs, experiment.config, load_data(experiment.config.data, static_cast<std::uint64_t>(experiment.config.seed)),
                  std::move(folder), std::move(options));
  RunContext& run = *session.run_;
  const RunFolder& files = run.folder;
  run.leader.begin(run.state, experiment.resolved, run.folder);
  run.changes = environment_changes(parse_json(vfs.read_file(files.environment()), files.environment()), environment_of(run));
  const std::vector<std::string> changes = run.changes;
  for (const std::string& change : changes) {
    if (!is_of_ranks(change)) tell_change(run, change);
  }
  RunHistory history;
  DecisionMap decisions;
  if (run.saver.store().empty()) {
    const std::string& weights = experiment.config.model.weights;
    TESSERA_CHECK(weights.empty(), IoError, files.path(), ": its checkpoints are gone; resume does not read model.weights (",
                  weights, ") again, train a new run");
    decisions = surviving_decisions(vfs, files.decisions(), {});
    run.state.start(initial_model(vfs, experiment.config, run.state.data()));
    run.progress.line(str("resuming at stage ", run.stage().name, ", step 0: the run has no checkpoint yet"));
  } else {
    const Checkpoint checkpoint = run.saver.store().load_latest();
    if (const Value* saved = checkpoint.manifest.find("history")) history = read<RunHistory>(*saved);
    load(run, checkpoint, history);
    tell_earlier_changes(run, checkpoint);
    decisions = surviving_decisions(vfs, files.decisions(), recorded_decisions(checkpoint.manifest));
  }
  for (const std::string& change : changes) {
    if (is_of_ranks(change)) tell_change(run, change, in_words(run));
  }
  run.decisions = decisions_of(run, std::move(decisions));
  run.open_records(std::move(history));
  return session;
}

RunOutcome Session::run() {
  const Tf32Products products(takes_tf32(run_->config()));
  try {
    // A run that is killed before its first log line has a status too.
    if (!run_->state.finished()) run_->write_status("training");
    const std::int64_t before = run_->state.position().global_step;
    const RunOutcome outcome = run_stages();
    run_->leader.end(outcome == RunOutcome::finished);
    profiling_->tell_missing(before);
    return outcome;
  } catch (const IoError& error) {
    const std::string what = explain_io_error(*run_, error);
    leave_failed(*run_, what);
    throw IoError(what);
  } catch (const std::exception& error) {
    leave_failed(*run_, error.what());
    throw;
  }
}

RunOutcome Session::run_stages() {
  for (;; begin_next_stage()) {
    if (!run_->state.position().stage_done && run_stage() == RunOutcome::stopped) {
      run_->write_status("stopped");
      return RunOutcome::stopped;
    }
    if (run_->state.at_last_stage()) break;
  }
  run_->write_status("finished");
  return RunOutcome::finished;
}

void Session::begin_next_stage() {
  run_->state.next_stage();
  run_->saver.next_stage();
  run_->last_loss.reset();
  run_->last_metric.reset();
}

RunOutcome Session::run_stage() {
  try {
    prepare_stage(*run_);
  } catch (const Stopped&) {
    run_->finish_saving();
    return RunOutcome::stopped;
  }
  if (run_->stage().train && train_stage() == RunOutcome::stopped) return RunOutcome::stopped;
  run_->state.end_stage();
  for (const auto& observer : observers_) observer->on_stage_end();
  return RunOutcome::finished;
}

RunOutcome Session::train_stage() {
  const std::int64_t total = run_->state.stage_steps();
  run_->leader.begin_stage(run_->state, run_->decisions->taken());
  {
    const RankLeader::Together together(run_->leader);
    run_->state.begin_training();
  }
  for (const auto& observer : observers_) observer->on_stage_begin();
  profiling_->begin_stage();
  try {
    const RunOutcome outcome = train_steps(total);
    profiling_->end_stage();
    return outcome;
  } catch (const NumericError& error) {
    const std::string what = explain_numeric_error(*run_, error.what());  // first: it finishes the save that way_on() names
    throw NumericError(what + way_on(*run_, str("optimizer.lr=", run_->stage().training.optimizer.lr() / 10)));
  } catch (const OutOfMemoryError& error) {
    throw OutOfMemoryError(error.what() + smaller_step(*run_, error));
  }
}

void Session::take_step() {
  const RankLeader::Together together(run_->leader);
  profiling_->take_step();
}

RunOutcome Session::train_steps(std::int64_t total) {
  const Position& position = run_->state.position();
  while (position.stage_step < total) {
    if (run_->leader.agree_to_stop(run_->options.stop.requested(), run_->state)) {
      for (const auto& observer : observers_) observer->on_stop();
      return RunOutcome::stopped;
    }
    take_step();
    run_->poll_saving();
    const StepEnd step{.stage_steps = total,
                       .epoch = position.stage_step % run_->state.steps_per_epoch() == 0,
                       .last = position.stage_step == total};
    if (step.epoch || step.last) run_->leader.compare(run_->state);
    for (const auto& observer : observers_) observer->on_step_end(step);
    kill_point("step", position.global_step);
  }
  return RunOutcome::finished;
}

}  // namespace tessera
