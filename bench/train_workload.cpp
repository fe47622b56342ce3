#include "bench/train_workload.h"

#include <chrono>

#include "core/config/value.h"
#include "core/device/device_work.h"
#include "core/device/precision.h"
#include "core/io/safetensors.h"
#include "core/io/vfs.h"
#include "core/rng.h"
#include "layers/models/model.h"
#include "train/report/export.h"
#include "train/tasks/classification.h"

namespace tessera::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kColours = 3;

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

Shape images(const WorkloadConfig& config) { return {config.batch, config.side, config.side, kColours}; }

Batch synthetic_batch(const WorkloadConfig& config, std::int64_t index) {
  Batch batch{{"image", Tensor::empty(images(config))}, {"label", Tensor::empty({config.batch}, DType::i64)}};
  const auto step = static_cast<std::uint64_t>(index);
  fill_normal(batch.at("image"), RngStream(config.seed, "bench", "images"), 0, 1, step);
  const RngStream labels(config.seed, "bench", "labels");
  for (std::int64_t i = 0; i < config.batch; ++i) {
    batch.at("label").data<std::int64_t>()[i] =
        random_below(labels, step, static_cast<std::uint64_t>(i), static_cast<std::uint64_t>(config.classes));
  }
  return batch;
}

const Classification kTask;

TrainingConfig training(const WorkloadConfig& config) {
  TrainingConfig training;
  training.optimizer.form = config.optimizer;
  training.schedule.form = ConstantSchedule{};
  return training;
}

}  // namespace

WorkloadConfig workload_named(const std::string& model, Device device) {
  if (model == "resnet20") return {.device = device};
  if (device.is_cuda() && (model == "resnet18" || model == "resnet50")) {
    WorkloadConfig config = workload_named("resnet18");
    config.model = model;
    config.batch = 256;
    config.batches = 2;
    config.device = device;
    return config;
  }
  if (model == "resnet18") {
    // At a larger rate random labels drive it so far that two orders of summation give losses that differ in the fourth digit.
    return {.model = model,
            .side = 224,
            .classes = 1000,
            .batch = 16,
            .optimizer = {.lr = 1e-3, .momentum = 0.9, .weight_decay = 5e-4}};
  }
  throw ConfigError(str("train_bench: --model is ", model, "; needs resnet20 or resnet18, on a GPU resnet50 too"));
}

TrainWorkload::TrainWorkload(const WorkloadConfig& config, const std::function<void(std::unique_ptr<Module>&)>& change)
    : config_(config), model_(build_model(named_model(config.model, config.classes), images(config))) {
  initialize(*model_, config.seed);
  if (change) change(model_);
  move_to(*model_, config.device);
  for (std::int64_t i = 0; i < config.batches; ++i) {
    const Batch batch = synthetic_batch(config, i);
    batches_.push_back(batch.to(config.device));
  }
  trainer_ = std::make_unique<StageTrainer>(*model_, training(config), kTask, config.seed, config.batches, config.batches,
                                            compute_dtype(config.precision, config.device));
}

void TrainWorkload::write_inputs(const std::filesystem::path& directory) {
  move_to(*model_, Device::cpu());
  export_torch(real_vfs(), *model_, images(config_), Value::map(), directory);
  move_to(*model_, config_.device);
  SafetensorsFile batches;
  for (std::size_t i = 0; i < batches_.size(); ++i) {
    batches.tensors[str("x", i)] = batches_[i].at("image").to(Device::cpu());
    batches.tensors[str("y", i)] = batches_[i].at("label").to(Device::cpu());
  }
  write_file_atomically(real_vfs(), directory / "batches.safetensors", encode_safetensors(batches));
  Value optimizer = Value::map();
  optimizer.set("lr", config_.optimizer.lr);
  optimizer.set("momentum", config_.optimizer.momentum);
  optimizer.set("weight_decay", config_.optimizer.weight_decay);
  write_file_atomically(real_vfs(), directory / "config.json", to_json(optimizer));
}

Steps TrainWorkload::run(std::int64_t count) {
  if (config_.device.is_cuda()) return run_queued(count);
  Steps steps;
  for (std::int64_t i = 0; i < count; ++i, ++step_) {
    const auto start = Clock::now();
    trainer_->step(next_batch(), step_, step_);
    steps.loss.push_back(trainer_->take_mean_loss());
    steps.ms.push_back(milliseconds_since(start));
  }
  return steps;
}

Steps TrainWorkload::run_queued(std::int64_t count) {
  synchronize(config_.device);
  const auto start = Clock::now();
  for (std::int64_t i = 0; i < count; ++i, ++step_) trainer_->step(next_batch(), step_, step_);
  synchronize(config_.device);
  const double each = milliseconds_since(start) / static_cast<double>(count);
  const auto entries = static_cast<std::size_t>(count);
  return {std::vector<double>(entries, each), std::vector<double>(entries, trainer_->take_mean_loss())};
}

}  // namespace tessera::bench
