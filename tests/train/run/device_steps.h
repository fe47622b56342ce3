// Batches, networks and comparisons for tests of training steps on a GPU.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>

#include "core/device/device_work.h"
#include "core/rng.h"
#include "layers/activation.h"
#include "layers/batch_norm.h"
#include "layers/conv2d.h"
#include "layers/linear.h"
#include "layers/pool2d.h"
#include "layers/sequential.h"
#include "layers/tucker2_conv2d.h"
#include "tests/support/op_checks.h"
#include "tests/support/relative_error.h"
#include "train/run/stage_trainer.h"

namespace tessera::testing {

inline Batch make_batch(const Shape& shape, std::uint64_t step, Device device) {
  Batch batch{{"image", Tensor::empty(shape)}, {"label", Tensor::empty({shape[0]}, DType::i64)}};
  fill_normal(batch.at("image"), RngStream(3, "test", "x"), 0, 1, step);
  for (std::int64_t i = 0; i < shape[0]; ++i)
    batch.at("label").data<std::int64_t>()[i] = (i + static_cast<std::int64_t>(step)) % 3;
  return batch.to(device);
}

// No kink anywhere: behind a rectifier, rounding alone flips gradients of numbers near zero, and devices part within a few steps.
// No bias in front of a normalisation, whose gradient is rounding alone.
inline std::unique_ptr<Module> smooth_network(Device device) {
  auto model = std::make_unique<Sequential>();
  model->add_child("conv", std::make_unique<Conv2d>(Conv2dConfig{.in = 3, .out = 16, .padding = {1, 1}, .bias = false}));
  model->add_child("bn1", std::make_unique<BatchNorm>(BatchNormConfig{.channels = 16}));
  model->add_child("gelu", std::make_unique<Gelu>());
  const Tucker2Conv2dConfig tucker{
      .conv = {.in = 16, .out = 24, .stride = {2, 2}, .padding = {1, 1}, .bias = false}, .rank_in = 7, .rank_out = 9};
  model->add_child("tucker", std::make_unique<Tucker2Conv2d>(tucker));
  model->add_child("bn2", std::make_unique<BatchNorm>(BatchNormConfig{.channels = 24}));
  model->add_child("pool", std::make_unique<GlobalAvgPool>());
  model->add_child("fc", std::make_unique<Linear>(LinearConfig{.in = 24, .out = 3}));
  initialize(*model, 1);
  move_to(*model, device);
  return model;
}

inline TrainingConfig with_everything() {
  TrainingConfig config;
  config.optimizer.form = SgdConfig{.lr = 0.05, .momentum = 0.9, .weight_decay = 1e-3};
  config.schedule.form = CosineSchedule{};  // another learning rate at every step
  config.clip_norm = 5.0;
  config.ema = EmaConfig{.decay = 0.9};
  return config;
}

inline std::map<std::string, Tensor> values_of(Module& model) {
  std::map<std::string, Tensor> values;
  for (const NamedParameter& entry : named_parameters(model)) {
    values.emplace(entry.path, entry.parameter->value().to(Device::cpu()));
  }
  for (const NamedBuffer& entry : named_buffers(model)) values.emplace(entry.path, entry.buffer->value.to(Device::cpu()));
  return values;
}

inline void expect_same(const std::map<std::string, Tensor>& a, const std::map<std::string, Tensor>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (const auto& [path, value] : a) EXPECT_TRUE(same_bytes(value, b.at(path))) << path;
}

// Counts recordings.
inline StepGraph::Recorder counting(int& recordings) {
  return [&recordings](const std::function<void()>& work) {
    ++recordings;
    return record_graph(Device::cuda(), work);
  };
}

inline void train(StageTrainer& trainer, const Shape& shape, std::int64_t from, std::int64_t to) {
  for (std::int64_t step = from; step < to; ++step) {
    trainer.step(make_batch(shape, static_cast<std::uint64_t>(step), Device::cuda()), step, step);
  }
}

}  // namespace tessera::testing
