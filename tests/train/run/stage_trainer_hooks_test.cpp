// When hooks are called, and what they may change.
#include "train/run/stage_trainer.h"

#include <gtest/gtest.h>

#include <utility>

#include "tests/train/run/small_steps.h"
#include "train/tasks/classification.h"

namespace tessera {
namespace {

const Classification kTask;

// Records when it is called, and adds the value of its slot, which rises with the step, to every gradient.
class Witness final : public Hook {
 public:
  Witness(const HookSetting& setting, std::vector<std::string>& calls)
      : length_(setting.length), slot_(setting.slots.add("witness.value")), calls_(calls) {}

  std::string_view name() const override { return "witness"; }
  void on_step_begin(Module&, std::int64_t step, StepStateData& data) override {
    data.slots[slot_] = static_cast<double>(step) / static_cast<double>(length_.steps);
  }
  bool needs_gradients() const override { return true; }
  void after_backward(Module& model, const StepState& state) override {
    const double value = step_state_data(state.tensor()).slots[slot_];
    for (const NamedParameter& entry : named_parameters(model)) {
      const Tensor gradient = entry.parameter->grad();
      float* const values = gradient.data<float>();
      for (std::int64_t i = 0; i < gradient.numel(); ++i) values[i] += static_cast<float>(value);
    }
  }
  std::int64_t interval() const override { return length_.steps_per_epoch; }
  void between_steps(Module&, std::int64_t done) override {
    calls_.push_back(str("between ", done));
    Value row = Value::map();
    row.set("done", done);
    rows_.push_back(std::move(row));
  }
  void on_stage_end(Module&) override { calls_.push_back("end"); }
  std::vector<Value> take_rows() override { return std::exchange(rows_, {}); }
  void swap_evaluation_weights(Module&) override { calls_.push_back("swap"); }
  State state() const override { return {}; }
  void load_state(const State&) override {}

 private:
  StageLength length_;
  std::size_t slot_;
  std::vector<std::string>& calls_;
  std::vector<Value> rows_;
};

std::vector<MakeHook> a_witness(std::vector<std::string>& calls) {
  return {[&calls](const HookSetting& setting) { return std::make_unique<Witness>(setting, calls); }};
}

TEST(StageTrainer, CallsHooksInsideAndBetweenSteps) {
  const auto model = make_model();
  const auto plain = make_model();
  std::vector<std::string> calls;
  TrainingConfig config = plain_sgd(1);
  config.ema = EmaConfig{.decay = 0.9, .warmup = false};  // the average has a slot too
  config.micro_batch = 3;  // two micro-batches, but one call of each hook
  StageTrainer trainer(*model, config, kTask, 1, 2, 4, DType::f32, a_witness(calls));
  StageTrainer without(*plain, config, kTask, 1, 2, 4);
  EXPECT_TRUE(trainer.state().contains("hook.witness"));

  trainer.step(make_batch(6), 0, 0);
  without.step(make_batch(6), 0, 0);
  EXPECT_EQ(weights_of(*model), weights_of(*plain));  // the slot's value is 0 in step 0
  trainer.between_steps(1);
  EXPECT_TRUE(calls.empty());
  trainer.step(make_batch(6), 1, 1);
  without.step(make_batch(6), 1, 1);
  std::vector<float> moved = weights_of(*plain);
  for (float& weight : moved) weight -= 0.25f;
  expect_near(weights_of(*model), moved, 1e-6);
  trainer.between_steps(2);
  EXPECT_EQ(calls, std::vector<std::string>{"between 2"});

  const std::vector<Value> rows = trainer.take_rows();
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].at("done").as_int(), 2);
  EXPECT_TRUE(trainer.take_rows().empty());
  trainer.with_evaluation_weights([] {});
  trainer.end_stage();
  EXPECT_EQ(calls, (std::vector<std::string>{"between 2", "swap", "swap", "end"}));
  EXPECT_FALSE(trainer.state().contains("hook.witness"));
}

TEST(StageTrainer, WhatHooksAddToGradientsIsClipped) {
  const auto model = make_model();
  const std::vector<float> start = weights_of(*model);
  std::vector<std::string> calls;
  TrainingConfig config = plain_sgd(1);
  config.clip_norm = 0.01;
  StageTrainer trainer(*model, config, kTask, 1, 4, 4, DType::f32, a_witness(calls));
  trainer.step(make_batch(6), 3, 3);  // the hook adds 0.75 to every element
  const std::vector<float> end = weights_of(*model);
  EXPECT_NEAR(distance(end, start), 0.01, 1e-4);
  for (std::size_t i = 0; i < start.size(); ++i) EXPECT_LT(end[i], start[i]) << "the hook's share is by far the largest";
}

}  // namespace
}  // namespace tessera
