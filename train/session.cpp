#include "train/session.h"

#include <unistd.h>

#include <ctime>

#include "compress/pass_runner.h"
#include "core/error.h"
#include "core/log.h"
#include "layers/builtin.h"
#include "layers/model_tree.h"
#include "train/config/yaml.h"
#include "train/config/yaml_writer.h"
#include "train/evaluate.h"
#include "train/model_state.h"
#include "train/status.h"

namespace tessera {
namespace {

Shape sample_shape(const DataSplits& data) {
  const Shape& images = data.train.images().shape();
  return {1, images[1], images[2], images[3]};
}

std::string percent(double fraction) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f %%", 100.0 * fraction);
  return text;
}

}  // namespace

Session::Session(Vfs& vfs, Experiment experiment, RunFolder folder, SessionOptions options)
    : vfs_(vfs), experiment_(std::move(experiment)), folder_(std::move(folder)), options_(options), lock_(vfs, folder_.path()),
      store_(vfs, folder_.checkpoints(), {.keep = experiment_.config.checkpoint.keep}),
      data_(load_data(experiment_.config.data, static_cast<std::uint64_t>(experiment_.config.seed))),
      progress_(options.out, options.terminal) {
  set_compute_threads(experiment_.config.threads.compute);
}

Session Session::start(Vfs& vfs, const Experiment& experiment, const std::string& config_text, RunFolder folder,
                       SessionOptions options) {
  Session session(vfs, experiment, std::move(folder), options);
  const RunFolder& files = session.folder_;
  write_file_atomically(vfs, files.config(), config_text);
  write_file_atomically(vfs, files.resolved_config(), to_yaml(experiment.resolved));
  write_file_atomically(vfs, files.environment(), to_json(describe_environment(experiment.config), 2) + "\n");
  write_file_atomically(vfs, files.decisions(), to_json(Value::map(), 2) + "\n");
  session.model_ = build_model(experiment.config.model, sample_shape(session.data_));
  initialize(*session.model_, static_cast<std::uint64_t>(experiment.config.seed));
  session.metrics_ = std::make_unique<JsonLines>(files.metrics(), 0);
  session.timing_ = std::make_unique<JsonLines>(files.timing(), 0);
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
  if (session.store_.steps().empty()) {
    session.model_ = build_model(session.experiment_.config.model, sample_shape(session.data_));
    initialize(*session.model_, static_cast<std::uint64_t>(session.experiment_.config.seed));
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
  const std::string fingerprint = data_.train.fingerprint();
  TESSERA_CHECK(checkpoint.manifest.at("data").as_string() == fingerprint, IoError, folder_.path(),
                ": the training data changed since the run began: fingerprint ", fingerprint, ", checkpoint has ",
                checkpoint.manifest.at("data").as_string());
  restored_ = checkpoint.parts;
  restored_.erase("model");
  last_saved_ = position_.global_step;
  progress_.line(str("resuming at stage ", stage().name, ", step ", position_.stage_step, " (global step ", position_.global_step, ")"));
}

RunOutcome Session::run() {
  const auto stages = static_cast<std::int64_t>(experiment_.config.stages.size());
  while (position_.stage < stages) {
    if (!position_.stage_done && run_stage() == RunOutcome::stopped) {
      write_status("stopped");
      return RunOutcome::stopped;
    }
    if (position_.stage + 1 == stages) break;
    const Position done = position_;
    position_ = {.stage = done.stage + 1, .global_step = done.global_step, .metrics_bytes = done.metrics_bytes,
                 .timing_bytes = done.timing_bytes};
    trainer_.reset();
    restored_.clear();
  }
  write_status("finished");
  return RunOutcome::finished;
}

RunOutcome Session::run_stage() {
  if (!position_.stage_ready) prepare_stage();
  if (stage().train && train_stage() == RunOutcome::stopped) return RunOutcome::stopped;
  position_.stage_done = true;
  save();
  return RunOutcome::finished;
}

void Session::prepare_stage() {
  if (stage().factorise) {
    const FactorisePass pass(*stage().factorise, *model_, sample_shape(data_));
    const PassReport report = run_pass(pass, model_, sample_shape(data_));
    write_file_atomically(vfs_, folder_.layers(), layers_csv(report));
    ++position_.global_step;
    progress_.line(str(stage().name, ": ", summary(report)));
  }
  position_.stage_ready = true;
}

std::int64_t Session::steps_per_epoch() const { return training_loader()->batches_per_epoch(); }

std::int64_t Session::stage_steps() const {
  const std::int64_t steps = stage().train->resolve(steps_per_epoch(), 0);
  TESSERA_CHECK(steps >= 1, ConfigError, "stage ", stage().name, ": train ", to_string(*stage().train), " is less than one step");
  return steps;
}

std::unique_ptr<Loader> Session::training_loader() const {
  return std::make_unique<Loader>(data_.train, training_loader_options(experiment_.config.data, data_, experiment_.config.seed,
                                                                       experiment_.config.threads.loader));
}

std::unique_ptr<StageTrainer> Session::make_trainer() {
  auto trainer = std::make_unique<StageTrainer>(*model_, stage().training, static_cast<std::uint64_t>(experiment_.config.seed),
                                                steps_per_epoch(), stage_steps());
  if (!restored_.empty() && position_.stage_step > 0) trainer->load_state(restored_);
  restored_.clear();
  return trainer;
}

RunOutcome Session::train_stage() {
  trainer_ = make_trainer();
  const std::int64_t total = stage_steps();
  const std::int64_t per_epoch = steps_per_epoch();
  const auto loader = training_loader();
  progress_.begin(stage().name, position_.stage_step, total, experiment_.config.data.batch);
  while (position_.stage_step < total) {
    // Every epoch of every stage has an order and augmentations of its own.
    const std::int64_t epoch = position_.stage_step / per_epoch;
    loader->start((position_.stage << 32) + epoch, position_.stage_step % per_epoch);
    const std::int64_t epoch_end = std::min(total, (epoch + 1) * per_epoch);
    while (position_.stage_step < epoch_end) {
      if (options_.stop.requested()) {
        save();
        return RunOutcome::stopped;
      }
      trainer_->step(loader->next(), position_.stage_step, position_.global_step);
      after_step(total);
    }
  }
  return RunOutcome::finished;
}

void Session::after_step(std::int64_t total) {
  ++position_.stage_step;
  ++position_.global_step;
  const bool epoch_end = position_.stage_step % steps_per_epoch() == 0;
  const bool last = position_.stage_step == total;
  if (position_.global_step % experiment_.config.log_every == 0 || last) log_interval();
  if (epoch_end || last) evaluate_epoch();
  progress_.step(position_.stage_step, last_loss_);
  const std::int64_t every = std::max<std::int64_t>(1, experiment_.config.checkpoint.every.resolve(steps_per_epoch(), total));
  if (!last && position_.stage_step % every == 0) save();
}

void Session::log_interval() {
  last_loss_ = trainer_->take_mean_loss();
  trainer_->check_finite();
  Value row = Value::map();
  row.set("stage", stage().name);
  row.set("step", position_.global_step);
  row.set("loss", last_loss_);
  row.set("lr", trainer_->last_lr());
  metrics_->append(row);
  Value clock = Value::map();
  clock.set("step", position_.global_step);
  clock.set("images_per_second", progress_.samples_per_second(position_.stage_step));
  timing_->append(clock);
  write_status("training");
}

void Session::evaluate_epoch() {
  const std::int64_t epoch = position_.stage_step / steps_per_epoch();
  std::string text = str(stage().name, " epoch ", epoch, "  loss ", last_loss_);
  if (data_.val.size() > 0) {
    Loader loader(data_.val, evaluation_loader_options(experiment_.config.data, data_, experiment_.config.threads.loader));
    Evaluation result;
    trainer_->with_evaluation_weights([&] { result = evaluate(*model_, loader); });
    Value row = Value::map();
    row.set("stage", stage().name);
    row.set("step", position_.global_step);
    row.set("epoch", epoch);
    row.set("val_loss", result.loss);
    row.set("val_accuracy", result.accuracy());
    metrics_->append(row);
    if (result.accuracy() > position_.best_accuracy) {
      position_.best_accuracy = result.accuracy();
      position_.best_step = position_.global_step;
    }
    text += str("  val accuracy ", percent(result.accuracy()));
  }
  char rate[64];
  std::snprintf(rate, sizeof rate, "  %.0f img/s", progress_.samples_per_second(position_.stage_step));
  progress_.line(text + rate);
}

void Session::save() {
  if (last_saved_ == position_.global_step && !position_.stage_done) return;
  if (trainer_) trainer_->check_finite();
  position_.metrics_bytes = metrics_->length();
  position_.timing_bytes = timing_->length();
  std::map<std::string, State> parts = trainer_ ? trainer_->state() : std::map<std::string, State>();
  parts["model"] = model_state(*model_);
  Value extra = Value::map();
  extra.set("model", describe(*model_));
  extra.set("position", write(position_));
  extra.set("stage_name", stage().name);
  extra.set("data", data_.train.fingerprint());
  const bool best = experiment_.config.checkpoint.best && position_.best_step == position_.global_step;
  store_.save(position_.global_step, parts, extra, {.pin_stage_end = position_.stage_done, .best = best});
  last_saved_ = position_.global_step;
  write_status("training");
}

void Session::write_status(const std::string& state) {
  RunStatus status;
  status.state = state;
  status.stage = stage().name;
  status.stage_step = position_.stage_step;
  status.stage_steps = stage().train ? stage_steps() : 0;
  status.global_step = position_.global_step;
  status.loss = last_loss_;
  status.best_accuracy = position_.best_accuracy;
  status.seconds_left = progress_.seconds_left(position_.stage_step);
  status.last_checkpoint_step = last_saved_;
  save_status(vfs_, folder_.status(), status);
}

}  // namespace tessera
