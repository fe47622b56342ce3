#include "train/run/run_state.h"

#include "core/support/error.h"
#include "core/support/profile.h"
#include "layers/batch_norm.h"
#include "layers/model_tree.h"
#include "layers/scores.h"
#include "train/run/compute_dtype.h"
#include "train/run/environment.h"
#include "train/run/model_state.h"
#include "train/run/saved_model.h"

namespace tessera {
namespace {

// Passes and hooks read batches from this epoch of their stage on. It is greater than any epoch that a stage trains.
constexpr std::int64_t kEpochOfPasses = std::int64_t{1} << 31;

std::uint64_t seed_of(const ExperimentConfig& config) { return static_cast<std::uint64_t>(config.seed); }

}  // namespace

Value sizes_of(const Shape& shape) {
  Value sizes = Value::list();
  for (const std::int64_t size : shape) sizes.as_list().emplace_back(size);
  return sizes;
}

void settle_for_run(ExperimentConfig& config) {
  config.device = resolve_device(config.device).name();
  config.threads.compute = resolve_compute_threads(config.threads.compute);
  for (StageConfig& stage : config.stages) settle_passes(stage, config.report);
}

void refuse_on_device(const ExperimentConfig& config) {
  const Device device = resolve_device(config.device);
  for (const StageConfig& stage : config.stages) {
    if (!stage.training.power_sgd) continue;
    try {
      check_power_sgd(device);
    } catch (const ConfigError& error) {
      throw ConfigError(str("power_sgd of stage ", stage.name, ": ", error.what()));
    }
  }
}

RunState::RunState(ExperimentConfig config, DataSplits data, Communicator& ranks)
    : ranks_(ranks),
      config_(std::move(config)),
      data_(std::move(data)),
      data_keys_(manifest_keys(data_)),
      device_(resolve_device(config_.device)),
      steps_per_epoch_(tessera::steps_per_epoch(config_.data, data_.train.size())) {
  if (ranks_.size() > 1) static_cast<void>(loader_of_rank(0));  // throws early if the ranks cannot share batches equally
}

void RunState::start(InitialModel initial) {
  model_ = std::move(initial.model);
  move_to(*model_, device_);  // drawn and imported on the host, so that both devices start from the same bytes
}

void RunState::load(const Checkpoint& checkpoint) {
  try {
    load_parts(checkpoint);
  } catch (const ConfigError& error) {  // its hashes match, so another program wrote it
    throw IoError(str(checkpoint.folder.string(), ": ", error.what()));
  }
}

void RunState::load_parts(const Checkpoint& checkpoint) {
  trainer_.reset();  // a rank above 0 may still have that of the stage before
  loader_.reset();
  model_ = saved_model(checkpoint);
  move_to(*model_, device_);
  position_ = read<Position>(checkpoint.manifest.at("position"));
  const Value* const results = checkpoint.manifest.find("results");  // absent in manifests of older programs
  results_ = results != nullptr ? read<StageResults>(*results) : StageResults();
  teachers_.load(checkpoint);
  teachers_.to_device(device_);
  const std::string changed = changed_since(checkpoint.manifest, data_keys_);
  TESSERA_CHECK(changed.empty(), IoError, checkpoint.folder.string(), ": ", changed);
  restored_ = checkpoint.parts;
  std::erase_if(restored_, [](const auto& part) { return part.first == "model" || Teachers::is_part(part.first); });
}

std::int64_t RunState::stage_steps() const {
  const std::int64_t steps = stage().train->resolve(steps_per_epoch_, 0);
  TESSERA_CHECK(steps >= 1, ConfigError, "stage ", stage().name, ": train ", to_string(*stage().train), " is less than one step");
  return steps;
}

std::vector<PassReport> RunState::prepare_stage(const TimingHooks& hooks, std::optional<std::int64_t> timings) {
  if (position_.stage_ready) return {};
  std::vector<PassReport> reports;
  for (StagePass& each : stage_passes(stage(), config_.report, results_)) {
    VetoOptions options = each.veto.value_or(VetoOptions{});
    options.timing.compute = compute_dtype_of(config_);
    options.timing.device = device_;
    if (timings) options.timing.sampling = Sampling::told_in(*timings);
    if (hooks.before) options.before_timing = [&](const std::string& what) { hooks.before(each.key, what); };
    options.after_timing = hooks.after;
    options.share_timings = hooks.share;
    options.kept_for = timing_environment(config_.device, config_.threads.compute);
    options.other_phases =
        other_phases(options.timing.phase, config_.report, stage().training.micro_batch.value_or(config_.data.batch));
    const Shape input = sample_shape(data_);
    if (each.veto) {
      for (const BlockProblem& problem : timing_problems(options, *model_, input)) {
        throw ConfigError(str("stage ", stage().name, ": ", each.key, '.', problem.key, ": ", problem.message));
      }
    }
    const Veto veto(options);
    const TrainingBatches batches = batches_for_passes();
    reports.push_back(run_stage_pass(each, stage(), model_, input, results_, each.veto ? &veto : nullptr, &batches));
    ++position_.global_step;
  }
  position_.stage_ready = true;
  return reports;
}

LoaderOptions RunState::loader_options() const {
  LoaderOptions options = training_options(config_.data, seed_of(config_), static_cast<int>(config_.threads.loader));
  options.device = device_;
  return options;
}

std::unique_ptr<Loader> RunState::training_loader() const { return std::make_unique<Loader>(data_.train, loader_options()); }

std::unique_ptr<Loader> RunState::loader_of_rank(int threads) const {
  LoaderOptions options = loader_options();
  options.share = ranks_.rank();
  options.shares = ranks_.size();
  options.threads = threads;
  return std::make_unique<Loader>(data_.train, std::move(options));
}

std::int64_t RunState::epoch_of_passes() const { return (position_.stage << 32) + kEpochOfPasses; }

TrainingBatches RunState::batches_for_passes() const {
  const auto batch = [this, loader = std::shared_ptr<Loader>()](std::int64_t i) mutable {
    if (!loader) loader = training_loader();
    const std::int64_t epoch = epoch_of_passes() + i / steps_per_epoch_, at = i % steps_per_epoch_;
    if (loader->epoch() != epoch || loader->batch() != at) loader->seek(epoch, at);
    return loader->next().parts();
  };
  return {.parts = batch, .compute = compute_dtype_of(config_)};
}

ReadBatches RunState::batches_for_hooks() const {
  return [this](std::int64_t first, std::int64_t count, const std::function<void(const Batch&)>& each) {
    const std::unique_ptr<Loader> loader = training_loader();
    loader->seek(epoch_of_passes() + first / steps_per_epoch_, first % steps_per_epoch_);
    for (std::int64_t i = 0; i < count; ++i) each(loader->next());
  };
}

std::vector<MakeHook> RunState::hooks_of_stage() const {
  return stage_hooks(stage(), {.results = results_,
                               .teacher = teachers_.of(stage()),
                               .compute = compute_dtype_of(config_),
                               .batches = batches_for_hooks()});
}

void RunState::renew_statistics_of_averages() {
  const NoGrad no_grad;
  renew_statistics(*model_, [&] {
    batches_for_hooks()(0, stage().training.ema->statistics, [&](const Batch& batch) {
      static_cast<void>(scores(*model_, batch.parts(), Context{}, compute_dtype_of(config_)));
    });
  });
}

void RunState::begin_training() {
  trainer_ = std::make_unique<StageTrainer>(*model_, stage().training, task(), seed_of(config_), steps_per_epoch_, stage_steps(),
                                            compute_dtype_of(config_), hooks_of_stage(), ranks_);
  if (stage().training.ema && stage().training.ema->statistics > 0) {
    trainer_->before_evaluation([this] { renew_statistics_of_averages(); });
  }
  // If the stage has begun, its state is in the checkpoint, even if the run was stopped before the stage's first step.
  if (position_.stage_step > 0 ? !restored_.empty() : restored_.contains("trainer")) {
    trainer_->load_state(restored_);
  } else {
    trainer_->begin_stage();
  }
  restored_.clear();
  loader_ = loader_of_rank(static_cast<int>(config_.threads.loader));
  // Every epoch of every stage has its own order and augmentations.
  loader_->seek((position_.stage << 32) + position_.stage_step / steps_per_epoch_, position_.stage_step % steps_per_epoch_);
}

void RunState::forget_training() {
  loader_.reset();
  trainer_.reset();
}

Batch RunState::next_batch() {
  try {
    Batch batch = loader_->next();
    charge_profile(ProfilePart::data, "wait for the batch");
    return batch;
  } catch (const OutOfMemoryError& error) {
    throw error.at("loader");
  }
}

void RunState::step() {
  trainer_->step(next_batch(), position_.stage_step, position_.global_step);
  ++position_.stage_step;
  ++position_.global_step;
  trainer_->between_steps(position_.stage_step);
}

Evaluation RunState::evaluate_val(const std::function<void()>& own_done) {
  Loader loader(data_.val, evaluation_options(config_.data.batch, static_cast<int>(config_.threads.loader), device_));
  trainer_->check_finite();  // nothing else has checked since the last log line
  Evaluation result;
  trainer_->with_evaluation_weights(
      [&] { result = evaluate_together(ranks_, *model_, loader, task(), compute_dtype_of(config_), own_done); });
  return result;
}

void RunState::end_stage() {
  loader_.reset();
  if (trainer_) trainer_->end_stage();
  teachers_.stage_ends(config_, static_cast<std::size_t>(position_.stage));
  position_.stage_done = true;
}

void RunState::next_stage() {
  const Position done = position_;
  teachers_.stage_over(config_, static_cast<std::size_t>(done.stage), *model_);
  position_ = {.stage = done.stage + 1,
               .global_step = done.global_step,
               .metrics_bytes = done.metrics_bytes,
               .timing_bytes = done.timing_bytes,
               .best = {},
               .best_step = -1};
  trainer_.reset();
  restored_.clear();
}

std::map<std::string, State> RunState::parts() const {
  std::map<std::string, State> parts = trainer_ ? trainer_->state() : restored_;
  parts["model"] = model_state(*model_);
  parts.merge(teachers_.parts());
  for (auto& [name, part] : parts) {
    for (auto& [path, tensor] : part.tensors) tensor = tensor.to(Device::cpu());
  }
  return parts;
}

Value RunState::manifest() const {
  Value keys = Value::map();
  keys.set("model", describe(*model_));
  keys.set("position", write(position_));
  keys.set("results", write(results_));
  keys.set("teachers", teachers_.trees());
  keys.set("stage_name", stage().name);
  keys.set("input", sizes_of(sample_shape(data_)));
  for (const Value::Entry& entry : data_keys_.as_map()) keys.set(entry.key, entry.value);
  return keys;
}

}  // namespace tessera
