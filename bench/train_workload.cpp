#include "bench/train_workload.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "core/config/value.h"
#include "core/device/device_work.h"
#include "core/device/precision.h"
#include "core/io/safetensors.h"
#include "core/io/vfs.h"
#include "core/rng.h"
#include "train/report/export.h"

namespace tessera::bench {
namespace {

using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

Batch synthetic_batch(const WorkloadConfig& config, std::int64_t index) {
  const Batch batch = Batch::empty(config.sample, config.batch);
  for (const Field& field : config.sample)
    fill_field(batch.at(field.name), field, config.seed, static_cast<std::uint64_t>(index));
  return batch;
}

Shape input_of(const WorkloadConfig& config) { return batch_shape(config.sample.front().shape, config.batch); }

TrainingConfig training(const WorkloadConfig& config) {
  TrainingConfig training;
  training.optimizer = config.optimizer;
  training.schedule.form = ConstantSchedule{};
  return training;
}

// Uses PyTorch's names.
Value describe(const OptimizerConfig& config) {
  Value optimizer = Value::map();
  if (const auto* const sgd = std::get_if<SgdConfig>(&config.form)) {
    optimizer.set("name", "sgd");
    optimizer.set("lr", sgd->lr);
    optimizer.set("momentum", sgd->momentum);
    optimizer.set("weight_decay", sgd->weight_decay);
    return optimizer;
  }
  const auto& adamw = std::get<AdamWConfig>(config.form);
  optimizer.set("name", "adamw");
  optimizer.set("lr", adamw.lr);
  optimizer.set("betas", Value::list({adamw.beta1, adamw.beta2}));
  optimizer.set("eps", adamw.eps);
  optimizer.set("weight_decay", adamw.weight_decay);
  return optimizer;
}

// Writes piece by piece, because a copy of all weights would set the peak memory of the process.
void write_tensors(const SafetensorsFile& file, const std::filesystem::path& path) {
  const std::unique_ptr<WritableFile> to = real_vfs().create(path);
  encode_safetensors(file, [&](std::string_view bytes) { to->write(bytes); });
  to->close();
}

}  // namespace

void fill_field(const Tensor& part, const Field& field, std::uint64_t seed, std::uint64_t batch) {
  const RngStream stream(seed, "bench", field.name);
  if (part.dtype() == DType::f32) return fill_normal(part, stream, 0, 1, batch);
  TESSERA_CHECK(field.limit > 0, InternalError, "workload: '", field.name, "' has no limit");
  for (std::int64_t i = 0; i < part.numel(); ++i) {
    part.data<std::int64_t>()[i] =
        random_below(stream, batch, static_cast<std::uint64_t>(i), static_cast<std::uint64_t>(field.limit));
  }
}

void write_transformer(Module& network, const Value& description, const std::filesystem::path& directory) {
  SafetensorsFile weights;
  for (const NamedParameter& named : named_parameters(network)) weights.tensors[named.path] = named.parameter->value();
  write_tensors(weights, directory / "weights.safetensors");
  write_file_atomically(real_vfs(), directory / "network.json", to_json(description));
}

TrainWorkload::TrainWorkload(const WorkloadConfig& config, const Change& change)
    : config_(config), model_(config.build(input_of(config))) {
  initialize(*model_, config.seed);
  if (change) change(model_);
  move_to(*model_, config.device);
  for (std::int64_t i = 0; i < config.batches; ++i) {
    const Batch batch = synthetic_batch(config, i);
    batches_.push_back(batch.to(config.device));
  }
  trainer_ = std::make_unique<StageTrainer>(*model_, training(config), *config.task, config.seed, config.batches, config.batches,
                                            compute_dtype(config.precision, config.device));
}

void TrainWorkload::write_inputs(const std::filesystem::path& directory) {
  move_to(*model_, Device::cpu());
  if (config_.torch.is_null()) {
    export_torch(real_vfs(), *model_, input_of(config_), Value::map(), directory);
  } else {
    write_transformer(*model_, config_.torch, directory);
  }
  move_to(*model_, config_.device);
  SafetensorsFile batches;
  for (std::size_t i = 0; i < batches_.size(); ++i) {
    batches.tensors[str("x", i)] = batches_[i].input().to(Device::cpu());
    batches.tensors[str("y", i)] = batches_[i].at(config_.sample[1].name).to(Device::cpu());
  }
  write_tensors(batches, directory / "batches.safetensors");
  write_file_atomically(real_vfs(), directory / "config.json", to_json(describe(config_.optimizer)));
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

std::int64_t TrainWorkload::state_bytes() const {
  std::int64_t weights = 0;
  for (const NamedParameter& named : named_parameters(*model_)) weights += named.parameter->value().bytes();
  const std::int64_t moments = std::holds_alternative<AdamWConfig>(config_.optimizer.form) ? 2 : 1;
  return weights * (2 + moments);
}

double TrainWorkload::flops() const {
  Trace trace;
  model_->output_shape(input_of(config_), &trace);
  double macs = 0;
  for (const LayerCost& layer : trace) macs += static_cast<double>(layer.macs);
  return 2 * 3 * macs * static_cast<double>(config_.batch);
}

}  // namespace tessera::bench
