// Steps whose gradients overflow at the first loss scales. The network always computes in f32, so that the CPU has kernels for
// it.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>

#include "core/autograd/numeric_check.h"
#include "core/ops/matmul.h"
#include "core/support/error.h"
#include "optim/loss_scale.h"
#include "tests/support/message_of.h"
#include "train/run/stage_trainer.h"
#include "train/tasks/classification.h"

namespace tessera {
namespace {

const Classification kTask;

// Gradients are 2/3 of this value: times 2^14 they are just below f32's limit of 2^128, and times 2^15 above it.
constexpr double kInput = 0x1p114;

class Wide final : public Module {
 public:
  Wide() : w_(add_parameter("w", Tensor::zeros({1, 3}))) {}
  std::string_view kind() const override { return "wide"; }
  Value config() const override { return Value::map(); }
  Var forward(const Var& x, const Context&) override { return matmul(Var(Tensor::full(x.shape(), kInput)), w_.var()); }
  Shape output_shape(const Shape& input, Trace*) const override { return {input[0], 3}; }
  std::vector<float> weights() const { return w_.value().to_vector<float>(); }

 private:
  Parameter& w_;
};

class LossScaleStep : public ::testing::Test {
 protected:
  static TrainingConfig config() {
    TrainingConfig config;
    config.optimizer.form = SgdConfig{.lr = 1 / kInput, .momentum = 0};
    config.clip_norm = 0x1p120;
    config.ema = EmaConfig{.decay = 0.5, .warmup = false};
    return config;
  }
  static void step(StageTrainer& trainer, std::int64_t index) {
    trainer.step({{"x", Tensor::full({1, 1}, 1)}, {"label", Tensor::zeros({1}, DType::i64)}}, index, index);
  }
  static Value kept(const StageTrainer& trainer) { return trainer.state().at("trainer").meta; }

  const std::vector<float> zeros_{0, 0, 0};
  Wide model_;
  StageTrainer trainer_{model_, config(), kTask, 1, 8, 8, DType::f16};
};

TEST_F(LossScaleStep, IsSkippedUntilGradientsFit) {
  for (const double scale : {0x1p15, 0x1p14}) {
    step(trainer_, 0);
    EXPECT_EQ(model_.weights(), zeros_);
    EXPECT_EQ(kept(trainer_).at("loss_scale").as_double(), scale);
    EXPECT_EQ(kept(trainer_).at("good_steps").as_int(), 0);
    EXPECT_NO_THROW(trainer_.check_finite());
  }
  step(trainer_, 2);
  const std::vector<float> after = model_.weights();
  EXPECT_NEAR(after[0], 2.0 / 3, 1e-6);
  EXPECT_NEAR(after[1], -1.0 / 3, 1e-6);
  trainer_.with_evaluation_weights([&] { EXPECT_NEAR(model_.weights()[0], 1.0 / 3, 1e-6) << "averaged once"; });
  EXPECT_EQ(kept(trainer_).at("loss_scale").as_double(), 0x1p14);
  EXPECT_EQ(kept(trainer_).at("good_steps").as_int(), 1);
  EXPECT_NO_THROW(trainer_.check_finite());
  EXPECT_NEAR(trainer_.take_mean_loss(), std::log(3.0), 1e-6);
}

// Gradients are requested before any step has lowered the scale, and must not lower it.
TEST_F(LossScaleStep, GradientsBetweenStepsAreThoseOfAScaleThatFits) {
  const auto ask = [&] {
    int calls = 0;
    trainer_.with_gradients({{"x", Tensor::full({1, 1}, 1)}, {"label", Tensor::zeros({1}, DType::i64)}}, [&] {
      ++calls;
      const std::vector<float> gradient = model_.parameter("w").grad().to_vector<float>();
      EXPECT_NEAR(gradient[0] / kInput, -2.0 / 3, 1e-6);
      EXPECT_NEAR(gradient[1] / kInput, 1.0 / 3, 1e-6);
    });
    EXPECT_FALSE(model_.parameter("w").grad().defined());
    return calls;
  };
  EXPECT_EQ(ask(), 1);
  EXPECT_EQ(model_.weights(), zeros_);
  EXPECT_EQ(kept(trainer_).at("loss_scale").as_double(), kInitialLossScale);
  step(trainer_, 0);
  EXPECT_EQ(kept(trainer_).at("loss_scale").as_double(), kInitialLossScale / 2) << "as without it";
  model_.parameter("w").set_value(Tensor::full({1, 3}, std::numeric_limits<double>::quiet_NaN()));
  EXPECT_EQ(ask(), 0) << "no scale helps";
}

TEST_F(LossScaleStep, GoesOnAtTheScaleOfItsState) {
  step(trainer_, 0);
  Wide other;
  StageTrainer resumed(other, config(), kTask, 1, 8, 8, DType::f16);
  resumed.load_state(trainer_.state());
  for (StageTrainer* trainer : {&trainer_, &resumed}) {
    step(*trainer, 1);
    step(*trainer, 2);
  }
  EXPECT_NE(other.weights(), zeros_);
  EXPECT_EQ(other.weights(), model_.weights());
  EXPECT_EQ(kept(resumed), kept(trainer_));
}

TEST_F(LossScaleStep, IsNoFaultOfTheNumbersThatAReplayChecks) {
  const NumericCheck check;
  for (int index = 0; index < 3; ++index) EXPECT_NO_THROW(step(trainer_, index));
  EXPECT_NE(model_.weights(), zeros_);
}

TEST_F(LossScaleStep, IsAFaultWhereNoScaleHelps) {
  std::map<std::string, State> state = trainer_.state();
  state.at("trainer").meta.set("loss_scale", kSmallestLossScale);
  trainer_.load_state(state);
  const std::string message = message_of<NumericError>([&] { trainer_.check_finite(); });
  EXPECT_NE(message.find("at any scale of the loss"), std::string::npos) << message;
}

}  // namespace
}  // namespace tessera
