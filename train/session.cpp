#include "train/session.h"

#include <chrono>
#include <ctime>
#include <filesystem>

#include "compress/pass_runner.h"
#include "compress/report.h"
#include "core/error.h"
#include "core/log.h"
#include "layers/builtin.h"
#include "layers/model_tree.h"
#include "train/config/yaml.h"
#include "train/config/yaml_writer.h"
#include "train/evaluate.h"
#include "train/import_weights.h"
#include "train/kill_point.h"
#include "train/model_state.h"
#include "train/status.h"

namespace tessera {
namespace {

Shape sample_shape(const DataSplits& data) {
  const Shape& images = data.train.dataset->images.shape();
  return {1, images[1], images[2], images[3]};
}

Value sizes_of(const Shape& shape) {
  Value sizes = Value::list();
  for (const std::int64_t size : shape) sizes.as_list().emplace_back(size);
  return sizes;
}

std::string percent(double fraction) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f %%", 100.0 * fraction);
  return text;
}

}  // namespace

Session::Session(Vfs& vfs, Experiment experiment, RunFolder folder, SessionOptions options)
    : vfs_(vfs),
      experiment_(std::move(experiment)),
      folder_(std::move(folder)),
      options_(options),
      lock_(folder_.path()),
      store_(vfs, folder_.checkpoints(), static_cast<int>(experiment_.config.checkpoint.keep)),
      data_(load_data(experiment_.config.data, static_cast<std::uint64_t>(experiment_.config.seed))),
      progress_(options.out, options.terminal, folder_.log()) {
  set_compute_threads(experiment_.config.threads.compute);
  store_.open_for_writing(lock_);
  steps_per_epoch_ = steps_per_epoch(experiment_.config.data, data_.train.size());
}

Session Session::start(Vfs& vfs, Experiment experiment, const std::string& config_text, RunFolder folder,
                       SessionOptions options) {
  // Resolved once and stored: a resume on another number of processors keeps the threads, and with them the bytes.
  experiment.config.threads.compute = resolve_compute_threads(experiment.config.threads.compute);
  experiment.resolved = write(experiment.config);
  Session session(vfs, experiment, std::move(folder), options);
  const RunFolder& files = session.folder_;
  write_file_atomically(vfs, files.config(), config_text);
  write_file_atomically(vfs, files.environment(), to_json(describe_environment(experiment.config), 2) + "\n");
  write_file_atomically(vfs, files.decisions(), to_json(Value::map(), 2) + "\n");
  InitialModel initial = initial_model(vfs, experiment.config.model, sample_shape(session.data_),
                                       static_cast<std::uint64_t>(experiment.config.seed));
  session.model_ = std::move(initial.model);
  session.metrics_ = std::make_unique<JsonLines>(files.metrics(), 0);
  session.timing_ = std::make_unique<JsonLines>(files.timing(), 0);
  if (!initial.imported.empty()) {
    session.progress_.line(initial.imported);
    session.save();  // the run's own copy: nothing reads the imported file again
  }
  write_file_atomically(vfs, files.resolved_config(), to_yaml(experiment.resolved));  // makes it a run that can be resumed
  return session;
}

Session Session::resume(Vfs& vfs, RunFolder folder, SessionOptions options) {
  Experiment experiment = parse_experiment(load_yaml(folder.resolved_config()));
  Session session(vfs, std::move(experiment), std::move(folder), options);
  const RunFolder& files = session.folder_;
  for (const std::string& change : environment_changes(parse_json(vfs.read_file(files.environment()), files.environment()),
                                                       describe_environment(session.experiment_.config))) {
    log_warning(str("resume: ", change, "; the same bytes as an uninterrupted run are not promised"));
  }
  const ExperimentConfig& config = session.experiment_.config;
  if (session.store_.empty()) {
    TESSERA_CHECK(config.model.weights.empty(), IoError, files.path(),
                  ": its checkpoints are gone; resume does not read model.weights (", config.model.weights,
                  ") again, train a new run");
    session.model_ = initial_model(vfs, config.model, sample_shape(session.data_), static_cast<std::uint64_t>(config.seed)).model;
  } else {
    session.load(session.store_.load_latest());
  }
  session.metrics_ = std::make_unique<JsonLines>(files.metrics(), session.position_.metrics_bytes);
  session.timing_ = std::make_unique<JsonLines>(files.timing(), session.position_.timing_bytes);
  return session;
}

void Session::load(const Checkpoint& checkpoint) {
  model_ = rebuild(checkpoint.manifest.at("model"), builtin_layers());
  load_model_state(*model_, checkpoint.parts.at("model"));
  position_ = read<Position>(checkpoint.manifest.at("position"));
  for (const std::string& message : checkpoint.damaged) log_warning(str("passed over a damaged checkpoint: ", message));
  const std::string content = fingerprint(*data_.train.dataset);
  TESSERA_CHECK(checkpoint.manifest.at("data").as_string() == content, IoError, folder_.path(),
                ": the training data changed since the run began: fingerprint ", content, ", checkpoint has ",
                checkpoint.manifest.at("data").as_string());
  restored_ = checkpoint.parts;
  restored_.erase("model");
  last_saved_ = position_.global_step;
  const auto saved = std::chrono::file_clock::to_sys(std::filesystem::last_write_time(checkpoint.folder));
  last_saved_time_ = std::chrono::duration_cast<std::chrono::seconds>(saved.time_since_epoch()).count();
  const bool best_is_stage_end = position_.stage_done && position_.best_step == position_.global_step;
  pinned_best_ = best_is_stage_end ? -1 : position_.best_step;
  progress_.line(
      str("resuming at stage ", stage().name, ", step ", position_.stage_step, " (global step ", position_.global_step, ")"));
}

RunOutcome Session::run() {
  try {
    write_status("training");  // a run that is killed before its first log line has a status too
    return run_stages();
  } catch (const std::exception& error) {
    progress_.line(str("failed: ", error.what()));
    write_failure();
    throw;
  }
}

void Session::write_failure() {
  try {
    write_status("failed");
  } catch (const Error& error) {  // what ended the run is the error to report
    log_warning(error.what());
  }
}

RunOutcome Session::run_stages() {
  const auto stages = static_cast<std::int64_t>(experiment_.config.stages.size());
  while (position_.stage < stages) {
    if (!position_.stage_done && run_stage() == RunOutcome::stopped) {
      write_status("stopped");
      return RunOutcome::stopped;
    }
    if (position_.stage + 1 == stages) break;
    const Position done = position_;
    position_ = {.stage = done.stage + 1,
                 .global_step = done.global_step,
                 .metrics_bytes = done.metrics_bytes,
                 .timing_bytes = done.timing_bytes,
                 .best_accuracy = -1,
                 .best_step = -1};
    pinned_best_ = -1;
    trainer_.reset();
    restored_.clear();
  }
  write_status("finished");
  return RunOutcome::finished;
}

RunOutcome Session::run_stage() {
  if (!position_.stage_ready) prepare_stage();
  if (stage().train && train_stage() == RunOutcome::stopped) return RunOutcome::stopped;
  if (trainer_) trainer_->end_stage();
  position_.stage_done = true;
  save();
  return RunOutcome::finished;
}

void Session::prepare_stage() {
  if (stage().factorise) {
    FactorisePass pass(*stage().factorise);
    const PassReport report = run_pass(model_, pass, sample_shape(data_));
    kill_point("factorise", position_.stage);
    write_file_atomically(vfs_, folder_.layers(), layers_csv(report.layers));
    ++position_.global_step;
    progress_.line(str(stage().name, ": ", summary(report)));
  }
  position_.stage_ready = true;
}

std::int64_t Session::stage_steps() const {
  const std::int64_t steps = stage().train->resolve(steps_per_epoch_, 0);
  TESSERA_CHECK(steps >= 1, ConfigError, "stage ", stage().name, ": train ", to_string(*stage().train), " is less than one step");
  return steps;
}

std::unique_ptr<Loader> Session::training_loader() const {
  const ExperimentConfig& config = experiment_.config;
  auto loader = std::make_unique<Loader>(
      data_.train, training_options(config.data, data_.normalization, static_cast<std::uint64_t>(config.seed),
                                    static_cast<int>(config.threads.loader)));
  // Every epoch of every stage has an order and augmentations of its own.
  loader->seek((position_.stage << 32) + position_.stage_step / steps_per_epoch_, position_.stage_step % steps_per_epoch_);
  return loader;
}

std::unique_ptr<StageTrainer> Session::make_trainer() {
  auto trainer = std::make_unique<StageTrainer>(*model_, stage().training, static_cast<std::uint64_t>(experiment_.config.seed),
                                                steps_per_epoch_, stage_steps());
  if (!restored_.empty() && position_.stage_step > 0) trainer->load_state(restored_);
  restored_.clear();
  return trainer;
}

RunOutcome Session::train_stage() {
  trainer_ = make_trainer();
  const std::int64_t total = stage_steps();
  const auto loader = training_loader();
  progress_.begin(stage().name, position_.stage_step, total, experiment_.config.data.batch);
  while (position_.stage_step < total) {
    if (options_.stop.requested()) {
      save();
      return RunOutcome::stopped;
    }
    trainer_->step(loader->next(), position_.stage_step, position_.global_step);
    after_step(total);
    kill_point("step", position_.global_step);
  }
  return RunOutcome::finished;
}

void Session::after_step(std::int64_t total) {
  ++position_.stage_step;
  ++position_.global_step;
  const bool epoch_end = position_.stage_step % steps_per_epoch_ == 0;
  const bool last = position_.stage_step == total;
  if (position_.global_step % experiment_.config.log_every == 0 || last) log_interval();
  if (epoch_end) trainer_->end_epoch();
  const bool improved = (epoch_end || last) && evaluate_epoch();
  progress_.step(position_.stage_step, last_loss_.value_or(0.0));
  const CheckpointConfig& checkpoint = experiment_.config.checkpoint;
  const std::int64_t every = std::max<std::int64_t>(1, checkpoint.every.resolve(steps_per_epoch_, total));
  if (!last && (position_.stage_step % every == 0 || (improved && checkpoint.best))) save();
}

void Session::log_interval() {
  last_loss_ = trainer_->take_mean_loss();
  trainer_->check_finite();
  Value row = Value::map();
  row.set("stage", stage().name);
  row.set("step", position_.global_step);
  row.set("loss", *last_loss_);
  row.set("lr", trainer_->last_lr());
  metrics_->append(row);
  Value clock = Value::map();
  clock.set("step", position_.global_step);
  clock.set("images_per_second", progress_.samples_per_second(position_.stage_step));
  timing_->append(clock);
  write_status("training");
}

bool Session::evaluate_epoch() {
  bool improved = false;
  const std::int64_t epoch = position_.stage_step / steps_per_epoch_;
  std::string text = str(stage().name, " epoch ", epoch);
  if (last_loss_) text += str("  loss ", *last_loss_);
  if (data_.val.size() > 0) {
    Loader loader(data_.val, evaluation_options(experiment_.config.data.batch, data_.normalization,
                                                static_cast<int>(experiment_.config.threads.loader)));
    Evaluation result;
    trainer_->with_evaluation_weights([&] { result = evaluate(*model_, loader); });
    Value row = Value::map();
    row.set("stage", stage().name);
    row.set("step", position_.global_step);
    row.set("epoch", epoch);
    row.set("val_loss", result.loss);
    row.set("val_accuracy", result.accuracy());
    metrics_->append(row);
    improved = result.accuracy() > position_.best_accuracy;
    if (improved) {
      position_.best_accuracy = result.accuracy();
      position_.best_step = position_.global_step;
    }
    text += str("  val accuracy ", percent(result.accuracy()));
  }
  char rate[64];
  std::snprintf(rate, sizeof rate, "  %.0f img/s", progress_.samples_per_second(position_.stage_step));
  progress_.line(text + rate);
  return improved;
}

void Session::save() {
  if (last_saved_ == position_.global_step && !position_.stage_done) return;
  if (trainer_) trainer_->check_finite();
  // A checkpoint counts on these bytes: they must be as durable as it is.
  metrics_->sync();
  timing_->sync();
  position_.metrics_bytes = metrics_->length();
  position_.timing_bytes = timing_->length();
  std::map<std::string, State> parts = trainer_ ? trainer_->state() : std::map<std::string, State>();
  parts["model"] = model_state(*model_);
  Value extra = Value::map();
  extra.set("model", describe(*model_));
  extra.set("position", write(position_));
  extra.set("stage_name", stage().name);
  extra.set("input", sizes_of(sample_shape(data_)));
  extra.set("data", fingerprint(*data_.train.dataset));
  pin_checkpoint();
  for (const std::string& warning : store_.save(position_.global_step, parts, extra).warnings) log_warning(warning);
  kill_point("save", position_.global_step);
  last_saved_ = position_.global_step;
  last_saved_time_ = static_cast<std::int64_t>(std::time(nullptr));
  write_status("training");
}

// The last checkpoint of each stage and the best one are kept whatever `keep` says.
void Session::pin_checkpoint() {
  const bool best = experiment_.config.checkpoint.best && position_.best_step == position_.global_step;
  if (best || position_.stage_done) store_.pin(position_.global_step);
  if (best && pinned_best_ >= 0 && pinned_best_ != position_.global_step) store_.unpin(pinned_best_);
  if (best) pinned_best_ = position_.stage_done ? -1 : position_.global_step;  // a stage's end stays pinned
}

void Session::write_status(const std::string& state) {
  RunStatus status;
  status.state = state;
  status.stage = stage().name;
  status.stage_step = position_.stage_step;
  status.stage_steps = stage().train ? stage_steps() : 0;
  status.global_step = position_.global_step;
  status.loss = last_loss_.value_or(0.0);
  status.best_accuracy = position_.best_accuracy;
  status.seconds_left = progress_.seconds_left(position_.stage_step);
  status.last_checkpoint_step = last_saved_;
  status.last_checkpoint_time = last_saved_time_;
  save_status(vfs_, folder_.status(), status);
}

}  // namespace tessera
