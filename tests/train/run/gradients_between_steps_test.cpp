// Gradients that a hook requests from a trainer: they equal those of a step and leave no trace.
#include <gtest/gtest.h>

#include "core/rng.h"
#include "layers/batch_norm.h"
#include "layers/dropout.h"
#include "layers/linear.h"
#include "layers/sequential.h"
#include "train/run/stage_trainer.h"
#include "train/tasks/classification.h"

namespace tessera::testing {
namespace {

const Classification kTask;

std::unique_ptr<Module> network(bool plain = false) {
  auto model = std::make_unique<Sequential>();
  model->add_child("fc1", std::make_unique<Linear>(LinearConfig{.in = 5, .out = 7}));
  if (!plain) model->add_child("norm", std::make_unique<BatchNorm>(BatchNormConfig{.channels = 7}));
  if (!plain) model->add_child("drop", std::make_unique<Dropout>(DropoutConfig{.p = 0.5}));
  model->add_child("fc2", std::make_unique<Linear>(LinearConfig{.in = 7, .out = 3}));
  initialize(*model, 1);
  return model;
}

Batch make_batch(std::int64_t samples) {
  Batch batch{{"image", Tensor::empty({samples, 5})}, {"label", Tensor::zeros({samples}, DType::i64)}};
  fill_normal(batch.at("image"), RngStream(3, "test", "x"), 0, 1);
  for (std::int64_t i = 0; i < samples; ++i) batch.at("label").data<std::int64_t>()[i] = i % 3;
  return batch;
}

std::vector<float> weights_of(Module& model) {
  std::vector<float> values;
  for (const NamedParameter& entry : named_parameters(model)) {
    const std::vector<float> part = entry.parameter->value().to_vector<float>();
    values.insert(values.end(), part.begin(), part.end());
  }
  return values;
}

// The trainer has statistics, random numbers, momentum and averages that could be disturbed.
TEST(GradientsBetweenSteps, AreThoseOfAStepAndDisturbNothing) {
  TrainingConfig config;
  config.optimizer.form = SgdConfig{.lr = 0.1, .momentum = 0.9};
  config.ema = EmaConfig{.decay = 0.9, .warmup = false};
  config.micro_batch = 3;
  const auto asked = network(), plain = network();
  StageTrainer trainer(*asked, config, kTask, 1, 10, 10), reference(*plain, config, kTask, 1, 10, 10);
  for (int step = 0; step < 4; ++step) {
    trainer.step(make_batch(6), step, step);
    reference.step(make_batch(6), step, step);
    int calls = 0;
    trainer.with_gradients(make_batch(12), [&] {
      ++calls;
      for (const NamedParameter& entry : named_parameters(*asked)) EXPECT_TRUE(entry.parameter->grad().defined()) << entry.path;
    });
    EXPECT_EQ(calls, 1);
    for (const NamedParameter& entry : named_parameters(*asked)) EXPECT_FALSE(entry.parameter->grad().defined()) << entry.path;
  }
  EXPECT_EQ(weights_of(*asked), weights_of(*plain));
  const auto buffers = named_buffers(*asked), others = named_buffers(*plain);
  ASSERT_FALSE(buffers.empty());
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    EXPECT_EQ(buffers[i].buffer->value.to_vector<float>(), others[i].buffer->value.to_vector<float>());
  }
  EXPECT_EQ(trainer.take_mean_loss(), reference.take_mean_loss());
}

TEST(GradientsBetweenSteps, MoveWeightsAsAStepDoes) {
  const auto model = network(/*plain=*/true);
  const std::vector<float> start = weights_of(*model);
  TrainingConfig config;
  config.optimizer.form = SgdConfig{.lr = 1, .momentum = 0};
  StageTrainer trainer(*model, config, kTask, 1, 10, 10);
  std::vector<float> moved = start;
  trainer.with_gradients(make_batch(6), [&] {
    std::size_t at = 0;
    for (const NamedParameter& entry : named_parameters(*model)) {
      for (const float each : entry.parameter->grad().to_vector<float>()) moved[at++] -= each;
    }
  });
  EXPECT_EQ(weights_of(*model), start);
  trainer.step(make_batch(6), 0, 0);
  const std::vector<float> now = weights_of(*model);
  for (std::size_t i = 0; i < now.size(); ++i) EXPECT_NEAR(now[i], moved[i], 1e-6);
}

}  // namespace
}  // namespace tessera::testing
