// SR-STE: what a forward pass sees, what is added to the gradients, and what remains at the end.
#include "compress/prune/sr_ste.h"

#include <gtest/gtest.h>

#include <cmath>

#include "compress/prune/prune.h"
#include "compress/prune/scores.h"
#include "core/support/error.h"
#include "layers/conv2d.h"
#include "layers/linear.h"
#include "layers/sequential.h"
#include "tests/support/message_of.h"

namespace tessera::testing {
namespace {

using Values = std::vector<float>;
constexpr StageLength kStage{.steps = 20, .steps_per_epoch = 10};

class SrSteHook : public ::testing::Test {
 protected:
  SrSteHook() {
    model_.add_child("stem", std::make_unique<Conv2d>(Conv2dConfig{.in = 3, .out = 8, .kernel = {3, 3}}));
    model_.add_child("wide", std::make_unique<Conv2d>(Conv2dConfig{.in = 8, .out = 12, .kernel = {3, 3}}));
    model_.add_child("odd", std::make_unique<Conv2d>(Conv2dConfig{.in = 6, .out = 5, .kernel = {1, 1}}));
    model_.add_child("fc", std::make_unique<Linear>(LinearConfig{.in = 12, .out = 10}));
    initialize(model_, 1);
  }
  static PruneConfig config(double lambda = 0.25) {
    PruneConfig config;
    config.pattern.pattern = "n_m";
    config.sr_ste = SrSteConfig{.lambda = lambda, .freeze = Duration::percent(50)};
    config.sparsity = {.target = 0.5, .schedule = "one_shot"};
    return config;
  }
  Parameter& weight() { return model_.child("wide").parameter("weight"); }
  Values values() { return weight().value().to_vector<float>(); }
  // The masked values, computed by the pattern itself.
  Values masked_values() {
    const Tensor scores = magnitudes(weight().value());
    const Tensor mask = NOfMPattern({.n = 2, .m = 4}).project({&scores, 1}, scores.numel()).front();
    Values masked = values();
    for (std::size_t i = 0; i < masked.size(); ++i) masked[i] = mask.data<std::uint8_t>()[i] != 0 ? masked[i] : 0;
    return masked;
  }
  void begin_step(SrSte& hook, std::int64_t step = 0) {
    StepStateData data;
    hook.on_step_begin(model_, step, data);
  }

  Sequential model_;
  StepState state_;
};

TEST_F(SrSteHook, AForwardSeesTheMaskOfItsWeightsAndTheUpdateAllOfThem) {
  SrSte hook(config(), model_, kStage);
  hook.on_stage_begin(model_);
  weight().value().data<float>()[0] = weight().value().data<float>()[1] = 0.5F;  // of equal values the first are kept
  weight().value().data<float>()[2] = weight().value().data<float>()[3] = -0.5F;
  const Values dense = values(), masked = masked_values();
  const void* const place = weight().value().raw();
  begin_step(hook);
  EXPECT_EQ(values(), masked);
  EXPECT_EQ(masked[2], 0);
  weight().set_grad(Tensor::full(weight().value().shape(), 1));
  hook.after_backward(model_, state_);
  EXPECT_EQ(values(), dense) << "to the bit";
  EXPECT_EQ(weight().value().raw(), place) << "a recorded step finds it there";
  const Values gradient = weight().grad().to_vector<float>();
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    EXPECT_EQ(gradient[i], masked[i] == 0 ? 1 + 0.25F * dense[i] : 1) << i;  // no weight is 0
  }
}

// AdamW's form of the pull: outside the gradient, with the step's learning rate, and not if the step's gradients overflowed.
TEST_F(SrSteHook, ADecoupledPullLeavesTheGradientAlone) {
  SrSte hook(config(0.5), model_, kStage, true);
  hook.on_stage_begin(model_);
  StepStateData published;
  published.lr = 0.25;
  state_.set(published);
  for (const bool skipped : {false, true}) {
    const Values dense = values(), masked = masked_values();
    static_cast<StepStateData*>(state_.tensor().raw())->skip = skipped ? 1 : 0;
    begin_step(hook);
    weight().set_grad(Tensor::full(weight().value().shape(), 1));
    hook.after_backward(model_, state_);
    EXPECT_EQ(weight().grad().to_vector<float>(), Values(dense.size(), 1));
    const Values pulled = values();
    for (std::size_t i = 0; i < dense.size(); ++i) {
      EXPECT_EQ(pulled[i], masked[i] == 0 && !skipped ? dense[i] - 0.125F * dense[i] : dense[i]) << i;
    }
  }
}

TEST_F(SrSteHook, TheMaskFreezesAndStays) {
  SrSte hook(config(), model_, kStage);
  hook.on_stage_begin(model_);
  EXPECT_EQ(hook.interval(), 10);
  const Values dense = values(), masked = masked_values();
  hook.between_steps(model_, 10);
  EXPECT_EQ(values(), masked);
  ASSERT_TRUE(weight().mask().defined());
  weight().value().data<float>()[0] = 3;
  const Values moved = values();
  begin_step(hook, 10);
  EXPECT_EQ(values(), moved) << "nothing is hidden any more";
  hook.after_backward(model_, state_);
  hook.between_steps(model_, 20);
  EXPECT_EQ(values(), moved);
  const std::vector<Value> rows = hook.take_rows();
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].at("prune").at("step").as_int(), 10);
  EXPECT_EQ(rows[0].at("prune").at("sparsity").as_double(), 0.5);
}

TEST_F(SrSteHook, EvaluationsSeeTheMaskOfWhateverWeightsAreThere) {
  SrSte hook(config(), model_, kStage);
  hook.on_stage_begin(model_);
  const Values dense = values(), masked = masked_values();
  for (int time = 0; time < 2; ++time) {
    hook.swap_evaluation_weights(model_);
    EXPECT_EQ(values(), masked);
    hook.swap_evaluation_weights(model_);
    EXPECT_EQ(values(), dense);
  }
  std::map<std::string, Tensor> saved{{"wide.weight", weight().value()}};
  hide_as_evaluated(hook.state(), saved);
  EXPECT_EQ(saved.at("wide.weight").to_vector<float>(), masked);
  EXPECT_EQ(values(), dense);
  std::map<std::string, Tensor> none;
  EXPECT_THROW(hide_as_evaluated(hook.state(), none), IoError);
  const State state = hook.state();
  hook.between_steps(model_, 10);
  hide_as_evaluated(hook.state(), none);  // the weights' masks apply
  SrSte other(config(), model_, kStage);
  EXPECT_NO_THROW(other.load_state(state));
  EXPECT_THROW(other.load_state({}), IoError);
}

TEST_F(SrSteHook, TakesDenseWeightsThatThePatternCanHold) {
  SrSte hook(config(), model_, kStage);
  hook.on_stage_begin(model_);
  hook.between_steps(model_, 10);
  EXPECT_FALSE(model_.child("odd").parameter("weight").mask().defined()) << "6 inputs";
  SrSte next(config(), model_, kStage);
  const std::string message = message_of<ConfigError>([&] { next.on_stage_begin(model_); });
  EXPECT_NE(message.find("wide.weight has a mask"), std::string::npos) << message;
}

TEST_F(SrSteHook, FreezesWithinTheStage) {
  PruneConfig asked = config();
  EXPECT_TRUE(schedule_problems(asked, kStage).empty());
  asked.sr_ste->freeze = Duration::steps(21);
  const std::vector<BlockProblem> problems = schedule_problems(asked, kStage);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].key, "sr_ste.freeze");
}

// Covers f64 too, and groups of any size. NaN is never hidden.
TEST(SrSteKernel, KeepsTheLargestOfEachGroup) {
  const Tensor weight = Tensor::from(std::vector<double>{1, -3, 2, 0.5, -1, 1, NAN, 0, 0}, {9});
  const Tensor dense = Tensor::empty_like(weight);
  const SrSteOperands operands{.weight = weight, .dense = dense, .gradient = {}};
  cpu::sr_ste_hide({&operands, 1}, {.n = 1, .m = 3});
  const std::vector<double> hidden = weight.to_vector<double>();
  EXPECT_EQ(std::vector<double>(hidden.begin(), hidden.begin() + 6), (std::vector<double>{0, -3, 0, 0, -1, 0}));
  EXPECT_TRUE(std::isnan(hidden[6]));
}

}  // namespace
}  // namespace tessera::testing
