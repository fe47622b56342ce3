// Weights that are updated during backward.
#include "train/run/early_updates.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/device/memory_history.h"
#include "core/storage.h"
#include "core/support/error.h"
#include "tests/train/run/small_steps.h"
#include "train/run/stage_trainer.h"
#include "train/tasks/classification.h"

namespace tessera {
namespace {

const Classification kTask;

// Reads the gradients, so that all of them must exist after backward.
class Onlooker final : public Hook {
 public:
  explicit Onlooker(std::int64_t& seen) : seen_(seen) {}
  std::string_view name() const override { return "onlooker"; }
  bool needs_gradients() const override { return true; }
  void after_backward(Module& model, const StepState&) override {
    for (const NamedParameter& entry : named_parameters(model)) seen_ += entry.parameter->grad().defined() ? 1 : 0;
  }
  State state() const override { return {}; }
  void load_state(const State&) override {}

 private:
  std::int64_t& seen_;
};

std::vector<MakeHook> onlooker(std::int64_t& seen) {
  return {[&seen](const HookSetting&) { return std::make_unique<Onlooker>(seen); }};
}

// Each weight is large enough for a separate update, so that several updates happen before backward ends.
std::unique_ptr<Module> wide_model() {
  auto model = std::make_unique<Sequential>();
  for (const char* name : {"fc1", "fc2", "fc3", "fc4"}) {
    model->add_child(name, std::make_unique<Linear>(LinearConfig{.in = 400, .out = 400}));
  }
  initialize(*model, 1);
  return model;
}

void mask_every_third(Module& model) {
  Parameter& weight = *named_parameters(model).front().parameter;
  const Tensor mask = Tensor::full(weight.value().shape(), 1, DType::u8);
  for (std::int64_t i = 0; i < mask.numel(); i += 3) mask.data<std::uint8_t>()[i] = 0;
  weight.set_mask(mask);
}

TrainingConfig adamw() {
  TrainingConfig config;
  config.optimizer.form = AdamWConfig{};
  return config;
}

void expect_same_state(const StageTrainer& trainer, const StageTrainer& other) {
  const State state = trainer.state().at("optimizer"), others = other.state().at("optimizer");
  ASSERT_EQ(state.tensors.size(), others.tensors.size());
  for (const auto& [name, tensor] : state.tensors) {
    const Tensor& same = others.tensors.at(name);
    const auto* const bytes = static_cast<const std::byte*>(tensor.raw());
    EXPECT_TRUE(std::equal(bytes, bytes + tensor.bytes(), static_cast<const std::byte*>(same.raw()))) << name;
  }
}

TEST(EarlyUpdates, GiveTheBytesOfUpdatesBehindBackward) {
  for (const std::optional<std::int64_t> micro_batch : {std::optional<std::int64_t>(), std::optional<std::int64_t>(4)}) {
    for (const bool moments : {false, true}) {
      TrainingConfig config = moments ? adamw() : plain_sgd(0.1);
      config.micro_batch = micro_batch;
      const auto early_model = wide_model(), late_model = wide_model();
      for (Module* const model : {early_model.get(), late_model.get()}) mask_every_third(*model);
      std::int64_t seen = 0;
      const std::vector<MakeHook> hooks = onlooker(seen);
      StageTrainer early(*early_model, config, kTask, 1, 4, 4), late(*late_model, config, kTask, 1, 4, 4, DType::f32, hooks);
      EXPECT_TRUE(early.updates_early());
      EXPECT_FALSE(late.updates_early());
      for (std::int64_t step = 0; step < 4; ++step) {
        early.step(make_batch(10, 400), step, step);
        late.step(make_batch(10, 400), step, step);
      }
      EXPECT_EQ(weights_of(*early_model), weights_of(*late_model));
      expect_same_state(early, late);
      EXPECT_EQ(early.take_mean_loss(), late.take_mean_loss());
      EXPECT_EQ(seen, 4 * 8) << "a hook that needs gradients finds all of them, in each step";
    }
  }
}

// Four weights of equal size. Early updates keep only one of their gradients at a time.
TEST(EarlyUpdates, GradientsAreNeverAllThere) {
  const std::size_t weight = std::size_t{400} * 400 * sizeof(float);
  const auto peak_of = [&](std::span<const MakeHook> hooks) {
    const auto model = wide_model();
    StageTrainer trainer(*model, plain_sgd(0.1), kTask, 1, 4, 4, DType::f32, hooks);
    const Batch batch = make_batch(3, 400);
    trainer.step(batch, 0, 0);
    const std::size_t before = memory_stats(Device::cpu()).in_use;
    const MemoryHistory history(Device::cpu());
    trainer.step(batch, 1, 1);
    return *std::ranges::max_element(history.in_use()) - before;
  };
  std::int64_t seen = 0;
  const std::size_t late = peak_of(onlooker(seen)), early = peak_of({});
  EXPECT_GE(late, 4 * weight);
  EXPECT_LE(early, late - 2 * weight);
}

// Fails in the second micro-batch of the first step.
class FailsOnce final : public Hook {
 public:
  std::string_view name() const override { return "fails_once"; }
  Var loss(const Var& value, const Var&, std::span<const NamedTensor>) override {
    if (++calls_ == 2) throw OutOfMemoryError("no room");
    return value;
  }
  State state() const override { return {}; }
  void load_state(const State&) override {}

 private:
  int calls_ = 0;
};

TEST(EarlyUpdates, AFailedStepLeavesNoGradient) {
  TrainingConfig config = plain_sgd(0.1);
  config.micro_batch = 4;
  const auto model = wide_model(), other = wide_model();
  const std::vector<MakeHook> hooks{[](const HookSetting&) { return std::make_unique<FailsOnce>(); }};
  StageTrainer trainer(*model, config, kTask, 1, 4, 4, DType::f32, hooks), plain(*other, config, kTask, 1, 4, 4);
  EXPECT_THROW(trainer.step(make_batch(8, 400), 0, 0), OutOfMemoryError);
  for (const NamedParameter& entry : named_parameters(*model)) EXPECT_FALSE(entry.parameter->grad().defined()) << entry.path;
  trainer.step(make_batch(8, 400), 0, 0);
  plain.step(make_batch(8, 400), 0, 0);
  EXPECT_EQ(weights_of(*model), weights_of(*other));
}

TEST(EarlyUpdates, WaitWhereAllGradientsAreNeeded) {
  const auto model = make_model();
  TrainingConfig clipped = plain_sgd(0.1);
  clipped.clip_norm = 1;
  EXPECT_FALSE(StageTrainer(*model, clipped, kTask, 1, 4, 4).updates_early());
  EXPECT_FALSE(StageTrainer(*model, plain_sgd(0.1), kTask, 1, 4, 4, DType::f16).updates_early()) << "a step may be skipped";
  EXPECT_TRUE(StageTrainer(*model, plain_sgd(0.1), kTask, 1, 4, 4, DType::bf16).updates_early());
}

}  // namespace
}  // namespace tessera
