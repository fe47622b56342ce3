#include "optim/loss_scale.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/autograd/backward.h"
#include "core/ops/reduce.h"
#include "optim/builtin.h"
#include "optim/ema.h"
#include "tests/optim/model.h"

namespace tessera {
namespace {

using testing::make_model;
using testing::set_gradients;
using testing::step_state;
using testing::to_doubles;

std::map<std::string, std::vector<double>> values_of(Module& model, const Optimizer& optimizer, const Ema& ema) {
  std::map<std::string, std::vector<double>> all;
  for (const NamedParameter& named : named_parameters(model)) all.emplace(named.path, to_doubles(named.parameter->value()));
  for (const auto& [path, tensor] : optimizer.state().tensors) all.emplace(str("optimizer.", path), to_doubles(tensor));
  for (const auto& [path, tensor] : ema.state().tensors) all.emplace(str("ema.", path), to_doubles(tensor));
  return all;
}

TEST(LossScale, MultipliesTheLossAndItsGradient) {
  StepState state;
  state.load(1024, 0);
  const Var x(Tensor::from(std::vector<float>{1, -2, 0.5}, {3}), true);
  const Var loss = scaled_by_loss_scale(sum(x), state);
  EXPECT_EQ(loss.value().item(), -512);
  backward(loss);
  EXPECT_EQ(x.grad().to_vector<float>(), std::vector<float>(3, 1024));
}

TEST(LossScale, UnscalesEveryGradientOnce) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    const auto model = make_model(dtype);
    const auto parameters = named_parameters(*model);
    StepState state;
    state.load(4096, 0);
    set_gradients(*model, 1);
    std::vector<std::vector<double>> before;
    for (const NamedParameter& named : parameters) before.push_back(to_doubles(named.parameter->grad()));
    const Tensor shared = parameters[0].parameter->grad();
    unscale_gradients(parameters, state);
    EXPECT_EQ(to_doubles(shared), before[0]) << "another owner keeps its values";
    for (std::size_t k = 0; k < parameters.size(); ++k) {
      const auto after = to_doubles(parameters[k].parameter->grad());
      for (std::size_t i = 0; i < after.size(); ++i) EXPECT_EQ(after[i] * 4096, before[k][i]);
    }
    EXPECT_EQ(state.read().skip, 0);
  }
}

TEST(LossScale, ANanOrInfSkipsTheStepAndHalvesTheScale) {
  for (const OptimizerConfig& config : {OptimizerConfig{SgdConfig{.momentum = 0.9}}, OptimizerConfig{AdamWConfig{}}}) {
    for (const double bad : {std::nan(""), std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()}) {
      const auto model = make_model();
      const auto parameters = named_parameters(*model);
      const auto optimizer = make_optimizer(config, parameters);
      Ema ema = testing::make_ema(0.999, *model);
      StepState state = step_state(0.1, 0.9);
      state.load(1, 5);
      set_gradients(*model, 1);
      optimizer->step(state);
      const auto before = values_of(*model, *optimizer, ema);

      state.load(kInitialLossScale, 5);
      set_gradients(*model, 2);
      parameters[1].parameter->grad().slice(0, 2, 3).fill(bad);
      unscale_gradients(parameters, state);
      EXPECT_EQ(state.read().skip, 1);
      optimizer->step(state);
      ema.after_step(*model, state);
      update_loss_scale(state);
      EXPECT_EQ(values_of(*model, *optimizer, ema), before);
      EXPECT_EQ(state.read().loss_scale, kInitialLossScale / 2);
      EXPECT_EQ(state.read().good_steps, 0);

      set_gradients(*model, 3);
      unscale_gradients(parameters, state);
      EXPECT_EQ(state.read().skip, 0) << "the next step counts again";
      optimizer->step(state);
      EXPECT_NE(values_of(*model, *optimizer, ema), before);
    }
  }
}

TEST(LossScale, GrowsAfterGoodStepsUpToItsBound) {
  StepState state;
  state.load(kInitialLossScale, 0);
  for (std::int64_t i = 1; i < kLossScaleGrowthInterval; ++i) update_loss_scale(state);
  EXPECT_EQ(state.read().loss_scale, kInitialLossScale);
  EXPECT_EQ(state.read().good_steps, kLossScaleGrowthInterval - 1);
  update_loss_scale(state);
  EXPECT_EQ(state.read().loss_scale, kInitialLossScale * 2);
  EXPECT_EQ(state.read().good_steps, 0);
  state.load(kLargestLossScale, kLossScaleGrowthInterval - 1);
  update_loss_scale(state);
  EXPECT_EQ(state.read().loss_scale, kLargestLossScale);
}

TEST(LossScale, PublishingAStepLeavesTheScaleAlone) {
  StepState state;
  state.load(512, 7);
  state.set({.step = 3, .lr = 0.5});
  EXPECT_EQ(state.read().loss_scale, 512);
  EXPECT_EQ(state.read().good_steps, 7);
  EXPECT_EQ(state.read().lr, 0.5);
}

}  // namespace
}  // namespace tessera
