#include "optim/ema.h"

#include <gtest/gtest.h>

#include "core/support/error.h"
#include "tests/optim/model.h"

namespace tessera {
namespace {

using testing::make_ema;
using testing::make_model;
using testing::random_tensor;
using testing::to_doubles;

// What training does to the model: new values everywhere.
void move_model(Module& model, std::uint64_t step) {
  for (const NamedParameter& named : named_parameters(model)) {
    named.parameter->set_value(random_tensor(named.parameter->value().shape(), named.parameter->value().dtype(), 10 * step + 7));
  }
  for (const NamedBuffer& named : named_buffers(model)) {
    named.buffer->value.copy_from(random_tensor(named.buffer->value.shape(), named.buffer->value.dtype(), 10 * step + 8));
  }
}

void run_steps(Ema& ema, Module& model, int steps) {
  StepState state;
  for (int t = 0; t < steps; ++t) {
    StepStateData data{.step = t};
    ema.on_step_begin(model, t, data);
    state.set(data);
    move_model(model, static_cast<std::uint64_t>(t));
    ema.after_step(model, state);
  }
}

TEST(Ema, WarmsUpUnlessToldOtherwise) {
  const auto model = make_model();
  for (const bool warmup : {true, false}) {
    StepSlots slots;
    Ema ema({.decay = 0.9, .warmup = warmup}, *model, slots);
    const auto decay_at = [&](std::int64_t step) {
      StepStateData data;
      ema.on_step_begin(*model, step, data);
      return data.slots[0];
    };
    EXPECT_DOUBLE_EQ(decay_at(0), warmup ? 0.1 : 0.9);
    EXPECT_DOUBLE_EQ(decay_at(9), warmup ? 10.0 / 19 : 0.9);
    EXPECT_DOUBLE_EQ(decay_at(80), 0.9);
    EXPECT_DOUBLE_EQ(decay_at(1000), 0.9);
  }
}

TEST(Ema, AveragesParametersAndBuffers) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    const auto model = make_model(dtype);
    Ema ema = make_ema(0.75, *model);
    std::map<std::string, std::vector<double>> expected;
    for (const auto& [path, average] : ema.state().tensors) expected[path] = to_doubles(average);
    EXPECT_EQ(expected.size(), 4u);
    StepState state;
    for (int t = 0; t < 10; ++t) {
      StepStateData data;
      ema.on_step_begin(*model, t, data);
      EXPECT_EQ(data.slots[0], 0.75);
      state.set(data);
      move_model(*model, static_cast<std::uint64_t>(t));
      ema.after_step(*model, state);
      const auto blend = [&](const std::string& path, const Tensor& value) {
        const auto now = to_doubles(value);
        for (std::size_t i = 0; i < now.size(); ++i) expected[path][i] = 0.75 * expected[path][i] + 0.25 * now[i];
      };
      for (const NamedParameter& named : named_parameters(*model)) blend(named.path, named.parameter->value());
      for (const NamedBuffer& named : named_buffers(*model)) blend(named.path, named.buffer->value);
    }
    for (const auto& [path, average] : ema.state().tensors) {
      const auto reached = to_doubles(average);
      for (std::size_t i = 0; i < reached.size(); ++i) EXPECT_NEAR(reached[i], expected[path][i], 1e-6) << path;
    }
  }
}

TEST(Ema, SwapsInAndOut) {
  const auto model = make_model();
  Ema ema = make_ema(0.5, *model);
  run_steps(ema, *model, 3);
  const State averages = ema.state();
  const auto trained = to_doubles(named_parameters(*model)[0].parameter->value());
  const auto buffer = to_doubles(named_buffers(*model)[0].buffer->value);
  ema.swap(*model);
  EXPECT_TRUE(ema.swapped());
  EXPECT_EQ(to_doubles(named_parameters(*model)[0].parameter->value()), to_doubles(averages.tensors.at("conv.weight")));
  EXPECT_EQ(to_doubles(named_buffers(*model)[0].buffer->value), to_doubles(averages.tensors.at("norm.running_mean")));
  EXPECT_THROW(ema.state(), InternalError);
  EXPECT_THROW(ema.after_step(*model, StepState()), InternalError);
  ema.swap(*model);
  EXPECT_EQ(to_doubles(named_parameters(*model)[0].parameter->value()), trained);
  EXPECT_EQ(to_doubles(named_buffers(*model)[0].buffer->value), buffer);
  EXPECT_EQ(to_doubles(ema.state().tensors.at("conv.weight")), to_doubles(averages.tensors.at("conv.weight")));
}

TEST(Ema, MaskedWeightsHaveMaskedAverages) {
  const auto model = make_model();
  Ema ema = make_ema(0.9, *model);
  Parameter& weight = *named_parameters(*model)[0].parameter;
  std::vector<std::uint8_t> mask(15, 1);
  mask[3] = 0;
  weight.set_mask(Tensor::from(mask, {3, 5}));
  StepState state;
  state.set({.slots = {0.9}});
  ema.after_step(*model, state);
  EXPECT_EQ(ema.state().tensors.at("conv.weight").data<float>()[3], 0.0f);
  EXPECT_NE(ema.state().tensors.at("conv.weight").data<float>()[4], 0.0f);
}

// A pruning between two steps is not in the averages yet. The averages are validated before the next step.
TEST(Ema, AMaskMadeSinceTheLastStepHoldsInWhatIsSwappedIn) {
  const auto model = make_model();
  Ema ema = make_ema(0.9, *model);
  run_steps(ema, *model, 2);
  Parameter& weight = *named_parameters(*model)[0].parameter;
  std::vector<std::uint8_t> mask(15, 1);
  mask[3] = 0;
  weight.set_mask(Tensor::from(mask, {3, 5}));
  std::vector<double> expected = to_doubles(ema.state().tensors.at("conv.weight"));
  ASSERT_NE(expected[3], 0);
  expected[3] = 0;
  ema.swap(*model);
  EXPECT_EQ(to_doubles(weight.value()), expected);
  ema.swap(*model);
  EXPECT_EQ(to_doubles(ema.state().tensors.at("conv.weight")), expected);
}

TEST(Ema, StateRoundTripIsExact) {
  const auto model = make_model();
  Ema ema = make_ema(0.9, *model);
  run_steps(ema, *model, 5);
  const State saved = ema.state();
  Ema again = make_ema(0.9, *model);
  again.load_state(saved);
  for (const auto& [path, average] : again.state().tensors) EXPECT_EQ(to_doubles(average), to_doubles(saved.tensors.at(path)));
  State missing = saved;
  missing.tensors.erase("conv.bias");
  EXPECT_THROW(again.load_state(missing), IoError);
  State other = saved;
  other.tensors["conv.bias"] = Tensor::zeros({9});
  EXPECT_THROW(again.load_state(other), IoError);
}

}  // namespace
}  // namespace tessera
