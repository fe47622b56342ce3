#include "train/run/stage_trainer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>

#include "core/autograd/numeric_check.h"
#include "core/support/error.h"
#include "tests/support/message_of.h"
#include "tests/train/run/kept_work.h"
#include "tests/train/run/small_steps.h"
#include "train/tasks/classification.h"

namespace tessera {
namespace {

const Classification kTask;

std::string non_finite(const StageTrainer& trainer) {
  return message_of<NumericError>([&] { trainer.check_finite(); });
}

TEST(StageTrainer, MicroBatchesGiveTheGradientsOfTheWholeBatch) {
  const auto whole = make_model();
  const std::vector<float> start = weights_of(*whole);
  StageTrainer reference(*whole, plain_sgd(1), kTask, 1, 10, 10);
  reference.step(make_batch(12), 0, 0);
  const double loss = reference.take_mean_loss();
  ASSERT_NE(weights_of(*whole), start);
  for (const std::int64_t micro : {1, 3, 12}) {
    SCOPED_TRACE(micro);
    const auto split = make_model();
    TrainingConfig config = plain_sgd(1);
    config.micro_batch = micro;
    StageTrainer trainer(*split, config, kTask, 1, 10, 10);
    trainer.step(make_batch(12), 0, 0);
    expect_near(weights_of(*split), weights_of(*whole), 1e-5);
    EXPECT_NEAR(trainer.take_mean_loss(), loss, 1e-5);
  }
}

// A replay must get all that changes by step: batch, learning rate, decay of the average, micro-batch, count of losses.
TEST(StageTrainer, ReplayedStepsHaveTheBytesOfEagerOnes) {
  TrainingConfig config = plain_sgd(0.5);
  config.schedule.form = CosineSchedule{};
  config.micro_batch = 4;
  config.clip_norm = 1;
  config.ema = EmaConfig{.decay = 0.9, .warmup = false};
  const auto train = [&](bool replays, int* recordings) {
    const auto model = make_model();
    StageTrainer trainer(*model, config, kTask, 1, 4, 8);
    if (replays) {
      trainer.record_with([&](const std::function<void()>& work) {
        ++*recordings;
        return std::make_unique<KeptWork>(work);
      });
    }
    for (int step = 0; step < 8; ++step) {
      Batch batch = make_batch(12);
      batch.at("image").fill(0.1 * step);
      trainer.step(batch, step, step);
      if (step == 5) trainer.with_evaluation_weights([] {});
    }
    std::vector<float> result = weights_of(*model);
    trainer.with_evaluation_weights([&] {
      for (const float average : weights_of(*model)) result.push_back(average);
    });
    result.push_back(static_cast<float>(trainer.take_mean_loss()));
    return result;
  };
  int recordings = 0;
  EXPECT_EQ(train(true, &recordings), train(false, nullptr));
  EXPECT_EQ(recordings, 1);
}

TEST(StageTrainer, ARestOfTheBatchCountsByItsSamples) {
  const auto whole = make_model();
  StageTrainer(*whole, plain_sgd(1), kTask, 1, 10, 10).step(make_batch(7), 0, 0);
  const auto split = make_model();
  TrainingConfig config = plain_sgd(1);
  config.micro_batch = 4;  // the smaller last batch of an epoch need not be a multiple of it
  StageTrainer(*split, config, kTask, 1, 10, 10).step(make_batch(7), 0, 0);
  expect_near(weights_of(*split), weights_of(*whole), 1e-5);
}

TEST(StageTrainer, MeanLossIsOverStepsAndStartsAgain) {
  const auto model = make_model();
  StageTrainer trainer(*model, plain_sgd(0), kTask, 1, 10, 10);  // fixed weights: every step has one loss
  trainer.step(make_batch(6), 0, 0);
  const double one = trainer.take_mean_loss();
  trainer.step(make_batch(6), 1, 1);
  trainer.step(make_batch(6), 2, 2);
  EXPECT_NEAR(trainer.take_mean_loss(), one, 1e-6);
  EXPECT_EQ(trainer.take_mean_loss(), 0.0);
}

TEST(StageTrainer, ClipsTheStepToTheNorm) {
  const auto model = make_model();
  const std::vector<float> start = weights_of(*model);
  TrainingConfig config = plain_sgd(1);
  config.clip_norm = 1e-3;
  StageTrainer(*model, config, kTask, 1, 10, 10).step(make_batch(6), 0, 0);
  EXPECT_NEAR(distance(weights_of(*model), start), 1e-3, 1e-5);  // f32 weights near 0.4 round each difference by 3e-8
}

TEST(StageTrainer, ClippingCountsTheKeptWeights) {
  const auto model = make_model();
  Tensor mask = Tensor::zeros({3, 7}, DType::u8);
  for (std::int64_t i = 0; i < mask.numel(); i += 2) mask.data<std::uint8_t>()[i] = 1;
  model->child("fc2").parameter("weight").set_mask(mask);
  const std::vector<float> start = weights_of(*model);
  TrainingConfig config = plain_sgd(1);
  config.clip_norm = 1e-3;
  StageTrainer(*model, config, kTask, 1, 10, 10).step(make_batch(6), 0, 0);
  EXPECT_NEAR(distance(weights_of(*model), start), 1e-3, 1e-5) << "gradients of pruned weights take no share of the norm";
}

TEST(StageTrainer, NamesTheWeightThatIsNoNumber) {
  const auto model = make_model();
  const StageTrainer trainer(*model, plain_sgd(0.1), kTask, 1, 10, 10);
  EXPECT_EQ(non_finite(trainer), "");
  model->child("fc2").parameter("weight").value().slice(0, 2, 3).fill(std::numeric_limits<double>::quiet_NaN());
  EXPECT_EQ(non_finite(trainer),
            "training: fc2.weight holds a NaN or Inf; lower the learning rate, add warmup, or clip gradients with clip_norm");
}

// Huge images and a first layer whose mask holds it at zero: the loss is finite, but the gradient of that layer is not.
std::unique_ptr<Module> masked_model() {
  auto model = make_model();
  model->child("fc1").parameter("weight").set_mask(Tensor::zeros({7, 5}, DType::u8));
  model->child("fc2").parameter("weight").set_value(Tensor::full({3, 7}, 1e10));
  model->child("fc2").parameter("weight").value().slice(0, 0, 1).fill(-1e10);
  return model;
}

Batch huge_batch() {
  Batch batch = make_batch(4);  // one class is more frequent, so that gradients do not cancel
  batch.at("image").fill(3e38);
  return batch;
}

TEST(StageTrainer, RemembersAGradientThatAMaskHides) {
  const auto model = masked_model();
  StageTrainer trainer(*model, plain_sgd(1e-12), kTask, 1, 10, 10);
  trainer.step(huge_batch(), 0, 0);
  EXPECT_TRUE(std::isfinite(trainer.take_mean_loss()));
  for (const float weight : weights_of(*model)) EXPECT_TRUE(std::isfinite(weight));
  const std::string message =
      "training: a gradient held a NaN or Inf; lower the learning rate, add warmup, or clip gradients with clip_norm";
  EXPECT_EQ(non_finite(trainer), message);
  trainer.step(make_batch(6), 1, 1);
  EXPECT_EQ(non_finite(trainer), message) << "later good steps must not clear it";
}

TEST(StageTrainer, NoSettingHidesABadGradient) {
  for (const double lr : {0.0, 1e-12}) {
    for (const bool clip : {false, true}) {
      SCOPED_TRACE(str("lr ", lr, " clip ", clip));
      const auto model = masked_model();
      TrainingConfig config = plain_sgd(lr);
      if (clip) config.clip_norm = 1.0;
      StageTrainer trainer(*model, config, kTask, 1, 10, 10);
      trainer.step(huge_batch(), 0, 0);
      EXPECT_NE(non_finite(trainer), "");
    }
  }
}

std::string checked_step(StageTrainer& trainer, const Batch& batch) {
  const NumericCheck check;
  return message_of<NumericError>([&] { trainer.step(batch, 0, 0); });
}

TEST(StageTrainer, ACheckedStepNamesTheOp) {
  const auto model = masked_model();
  StageTrainer trainer(*model, plain_sgd(1), kTask, 1, 10, 10);
  const std::string message = checked_step(trainer, huge_batch());
  EXPECT_TRUE(message.starts_with("linear (fc1) backward made the first Inf: gradient of input 1 f32 [7, 5] at [0, 0] is "))
      << message;
}

TEST(StageTrainer, ACheckedStepNamesTheBatch) {
  const auto model = make_model();
  StageTrainer trainer(*model, plain_sgd(1), kTask, 1, 10, 10);
  Batch batch = make_batch(6);
  batch.at("image").slice(0, 2, 3).slice(1, 4, 5).fill(std::numeric_limits<double>::quiet_NaN());
  EXPECT_EQ(checked_step(trainer, batch), "the batch brought the first NaN: image f32 [6, 5] at [2, 4] is nan");
}

TEST(StageTrainer, ACheckedStepNamesTheWeightThatAnUpdateSpoils) {
  const auto model = make_model();
  model->child("fc1").parameter("weight").set_trainable(false);
  StageTrainer trainer(*model, plain_sgd(1e300), kTask, 1, 10, 10);  // exceeds the range of float
  const std::string message = checked_step(trainer, make_batch(6));
  EXPECT_TRUE(message.starts_with("the update made the first ")) << message;
  EXPECT_NE(message.find(": fc1.bias f32 [7] at [0] is "), std::string::npos) << message;
  EXPECT_NE(message.find("; the gradients were finite, up to "), std::string::npos) << message;
}

TEST(StageTrainer, ACheckedStepTakesTheSameStep) {
  const auto plain = make_model();
  StageTrainer(*plain, plain_sgd(1), kTask, 1, 10, 10).step(make_batch(6), 0, 0);
  const auto checked = make_model();
  StageTrainer trainer(*checked, plain_sgd(1), kTask, 1, 10, 10);
  EXPECT_EQ(checked_step(trainer, make_batch(6)), "");
  EXPECT_EQ(weights_of(*checked), weights_of(*plain));
}

TEST(StageTrainer, ALossThatIsNoNumberIsAnError) {
  const auto model = make_model();
  StageTrainer trainer(*model, plain_sgd(0), kTask, 1, 10, 10);
  Batch batch = make_batch(6);
  batch.at("image").fill(std::numeric_limits<double>::infinity());
  trainer.step(batch, 0, 0);
  EXPECT_THROW(trainer.take_mean_loss(), NumericError);
}

TEST(StageTrainer, AdoptsTheAverageAtTheEnd) {
  const auto model = make_model();
  const std::vector<float> start = weights_of(*model);
  TrainingConfig config = plain_sgd(1);
  config.ema = EmaConfig{.decay = 0.75, .warmup = false};
  StageTrainer trainer(*model, config, kTask, 1, 10, 10);
  trainer.step(make_batch(6), 0, 0);
  const std::vector<float> end = weights_of(*model);
  std::vector<float> average(start.size());
  for (std::size_t i = 0; i < start.size(); ++i) average[i] = 0.75f * start[i] + 0.25f * end[i];
  trainer.with_evaluation_weights([&] { expect_near(weights_of(*model), average, 1e-6); });
  EXPECT_EQ(weights_of(*model), end);
  EXPECT_TRUE(trainer.state().contains("hook.ema"));
  trainer.end_stage();
  expect_near(weights_of(*model), average, 1e-6);
  EXPECT_FALSE(trainer.state().contains("hook.ema"));
}

TEST(StageTrainer, StateGoesOnWithTheSameSteps) {
  TrainingConfig config;
  config.optimizer.form = SgdConfig{.lr = 0.1, .momentum = 0.9};
  config.ema = EmaConfig{.decay = 0.5, .warmup = false};
  const auto straight = make_model();
  StageTrainer trainer(*straight, config, kTask, 1, 10, 10);
  trainer.step(make_batch(6), 0, 0);
  std::map<std::string, State> saved;
  for (const auto& [part, state] : trainer.state()) {
    saved[part].meta = state.meta;
    for (const auto& [name, tensor] : state.tensors) saved[part].tensors[name] = tensor.clone();
  }
  const auto resumed = make_model();
  const auto source = named_parameters(*straight);
  const auto target = named_parameters(*resumed);
  for (std::size_t i = 0; i < source.size(); ++i) target[i].parameter->set_value(source[i].parameter->value().clone());
  trainer.step(make_batch(6), 1, 1);

  StageTrainer second(*resumed, config, kTask, 1, 10, 10);
  second.load_state(saved);
  second.step(make_batch(6), 1, 1);
  EXPECT_EQ(weights_of(*resumed), weights_of(*straight));
  EXPECT_EQ(second.take_mean_loss(), trainer.take_mean_loss());
  saved.erase("hook.ema");
  EXPECT_EQ(message_of<IoError>([&] { second.load_state(saved); }), "checkpoint: the part 'hook.ema' is missing");
}

}  // namespace
}  // namespace tessera
