// Steps of a small network by several ranks together, and by one process.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "layers/batch_norm.h"
#include "layers/dropout.h"
#include "tests/core/comm/ranks.h"
#include "tests/train/run/small_steps.h"
#include "train/run/stage_trainer.h"
#include "train/tasks/classification.h"

namespace tessera {

inline constexpr std::int64_t kBatch = 24;
inline const Classification kTask;

inline std::int64_t share() { return kBatch / ranks().size(); }

inline std::unique_ptr<Module> network(bool norm, Device device = {}) {
  auto model = std::make_unique<Sequential>();
  model->add_child("fc1", std::make_unique<Linear>(LinearConfig{.in = 5, .out = 7}));
  if (norm) model->add_child("norm", std::make_unique<BatchNorm>(BatchNormConfig{.channels = 7}));
  model->add_child("drop", std::make_unique<Dropout>(DropoutConfig{.p = 0.5}));
  model->add_child("fc2", std::make_unique<Linear>(LinearConfig{.in = 7, .out = 3}));
  initialize(*model, 1);
  move_to(*model, device);
  return model;
}

inline TrainingConfig settings(std::optional<std::int64_t> micro_batch = {}) {
  TrainingConfig config;
  config.optimizer.form = SgdConfig{.lr = 0.1, .momentum = 0.9};
  config.clip_norm = 0.5;
  config.ema = EmaConfig{.decay = 0.9};
  config.micro_batch = micro_batch;
  return config;
}

inline StageTrainer trainer_of(Module& model, const TrainingConfig& config, Communicator& together = ranks()) {
  return StageTrainer(model, config, kTask, 1, 10, 10, DType::f32, {}, together);
}

inline Batch batch_of(int step) {
  Batch batch = make_batch(kBatch);
  for (std::int64_t i = 0; i < batch.input().numel(); ++i) batch.input().data<float>()[i] += 0.1f * static_cast<float>(step);
  return batch;
}

inline Batch share_of(const Batch& batch) { return batch.slice(ranks().rank() * share(), (ranks().rank() + 1) * share()); }

using Bytes = std::map<std::string, std::vector<double>>;

// Of everything that a checkpoint holds.
inline Bytes all_values(Module& model, const StageTrainer& trainer) {
  Bytes values;
  for (const NamedParameter& entry : named_parameters(model)) {
    values[entry.path] = entry.parameter->value().to(DType::f64).to_vector<double>();
  }
  for (const auto& [part, state] : trainer.state()) {
    for (const auto& [name, tensor] : state.tensors) {
      values[str(part, '/', name)] = tensor.to(DType::f64).to_vector<double>();
    }
  }
  return values;
}

inline Bytes after_steps(Module& model, StageTrainer& trainer, bool shared) {
  for (int step = 0; step < 5; ++step) {
    const Batch batch = shared ? share_of(batch_of(step)) : batch_of(step);
    trainer.step(batch.to(device_of(model)), step, step);
  }
  return all_values(model, trainer);
}

inline Bytes of_ranks(std::optional<std::int64_t> micro_batch, bool norm, Device device = {}) {
  const auto model = network(norm, device);
  StageTrainer trainer = trainer_of(*model, settings(micro_batch));
  return after_steps(*model, trainer, true);
}

inline Bytes alone(std::int64_t micro_batch, bool norm, Device device = {}) {
  const auto model = network(norm, device);
  StageTrainer trainer(*model, settings(micro_batch), kTask, 1, 10, 10);
  return after_steps(*model, trainer, false);
}

inline void expect_the_same_on_all_ranks(const Bytes& bytes) {
  std::string mine;
  for (const auto& [name, values] : bytes) {
    mine += name;
    mine.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(double));
  }
  for (const std::string& other : ranks().all_gather(mine)) EXPECT_EQ(other, mine);
}

}  // namespace tessera
