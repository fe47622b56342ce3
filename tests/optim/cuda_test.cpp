// Compares updates on a GPU with the CPU's, which are tested against references in double.
#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <vector>

#include "core/device/transfer_stats.h"
#include "optim/builtin.h"
#include "optim/ema.h"
#include "optim/grad_clip.h"
#include "optim/loss_scale.h"
#include "tests/optim/model.h"
#include "tests/support/gpu.h"
#include "tests/support/op_checks.h"
#include "tests/support/relative_error.h"

namespace tessera::testing {
namespace {

constexpr int kSteps = 6;

Tensor every_third_off(const Shape& shape) {
  const Tensor mask = Tensor::empty(shape, DType::u8);
  for (std::int64_t i = 0; i < mask.numel(); ++i) mask.data<std::uint8_t>()[i] = i % 3 != 0;
  return mask;
}

// The small model, and tensors of whole blocks, of blocks with a remainder, and more tensors than one launch takes.
std::unique_ptr<Holder> many_tensors(DType dtype) {
  auto model = make_model(dtype);
  model->child("conv").parameter("weight").set_mask(every_third_off({3, 5}));
  model->add_parameter("large", random_tensor({100, 130}, dtype, 10)).set_mask(every_third_off({100, 130}));
  model->add_parameter("whole", random_tensor({8192}, dtype, 11));
  model->add_parameter("odd", random_tensor({4099}, dtype, 12));
  for (std::uint64_t i = 0; i < 400; ++i) {
    model->add_parameter(str("small", i), random_tensor({40 + static_cast<std::int64_t>(i % 5)}, dtype, 20 + i));
  }
  return model;
}

void set_gradients_on(Device device, Module& model, std::uint64_t step) {
  set_gradients(model, step);
  for (const NamedParameter& named : named_parameters(model)) named.parameter->set_grad(named.parameter->grad().to(device));
}

// What the steps leave: weights, optimiser state, averages.
State left_by(const std::vector<NamedParameter>& parameters, const Optimizer& optimizer, const Ema& ema) {
  State result = optimizer.state();
  for (const NamedParameter& named : parameters) result.tensors.emplace("value." + named.path, named.parameter->value());
  for (const auto& [path, average] : ema.state().tensors) result.tensors.emplace("average." + path, average);
  return result;
}

void expect_close(const State& got, const State& expected, double tolerance) {
  ASSERT_EQ(got.tensors.size(), expected.tensors.size());
  for (const auto& [name, tensor] : expected.tensors) {
    EXPECT_LE(relative_error(got.tensors.at(name), tensor), tolerance) << name;
  }
}

// The state after clipped, masked and averaged steps.
State run_steps(const OptimizerConfig& config, DType dtype, Device device) {
  const auto model = many_tensors(dtype);
  move_to(*model, device);
  const auto parameters = named_parameters(*model);
  const auto optimizer = make_optimizer(config, parameters);
  Ema ema = testing::make_ema(0.9, *model);
  StepState state(device);
  for (int step = 0; step < kSteps; ++step) {
    set_gradients_on(device, *model, static_cast<std::uint64_t>(step));
    state.set({.step = step, .lr = 0.1 / (1 + step), .slots = {0.9}});
    const TransferStats before = transfer_stats();
    clip_grad_norm(parameters, 1.5);
    optimizer->step(state);
    ema.after_step(*model, state);
    EXPECT_EQ(transfer_stats(), before);
  }
  return left_by(parameters, *optimizer, ema);
}

// In double, an error in the last bit of beta^t is a thousand times larger in 1 - beta^t.
void expect_same_steps(const OptimizerConfig& config, Device gpu) {
  for (const auto& [dtype, tolerance] : {std::pair{DType::f64, 1e-12}, std::pair{DType::f32, 1e-6}}) {
    SCOPED_TRACE(str(dtype));
    expect_close(run_steps(config, dtype, gpu), run_steps(config, dtype, Device::cpu()), tolerance);
  }
}

class CudaOptimizer : public GpuTest {};

TEST_F(CudaOptimizer, SgdFollowsTheCpu) {
  OptimizerConfig config;
  config.form = SgdConfig{.momentum = 0.9, .weight_decay = 0.01};
  expect_same_steps(config, gpu());
  config.form = SgdConfig{.momentum = 0.9, .nesterov = true, .weight_decay = 0.01, .decay_norm_bias = false};
  expect_same_steps(config, gpu());
  config.form = SgdConfig{.momentum = 0};
  expect_same_steps(config, gpu());
}

TEST_F(CudaOptimizer, AdamWFollowsTheCpu) {
  OptimizerConfig config;
  config.form = AdamWConfig{.weight_decay = 0.01};
  expect_same_steps(config, gpu());
}

TEST_F(CudaOptimizer, StepsGiveTheNormThatClippingGives) {
  for (const OptimizerConfig& config : {OptimizerConfig{SgdConfig{}}, OptimizerConfig{AdamWConfig{}}}) {
    const auto model = many_tensors(DType::f32);
    move_to(*model, gpu());
    const auto parameters = named_parameters(*model);
    const auto optimizer = make_optimizer(config, parameters);
    StepState state(gpu());
    state.set({.lr = 0.1});
    const Tensor norm = Tensor::full({}, -1.0, DType::f64, gpu());
    optimizer->step(state, norm);
    EXPECT_EQ(norm.item(), 0) << "without gradients";
    set_gradients_on(gpu(), *model, 3);
    optimizer->step(state, norm);
    EXPECT_EQ(norm.item(), clip_grad_norm(parameters, 1e30).item());
  }
}

TEST_F(CudaOptimizer, NormsAreOfAllGradientsTogether) {
  const auto model = many_tensors(DType::f32);
  set_gradients(*model, 3);
  const double expected = clip_grad_norm(named_parameters(*model), 1e30).item();
  move_to(*model, gpu());
  set_gradients_on(gpu(), *model, 3);
  EXPECT_NEAR(clip_grad_norm(named_parameters(*model), 1e30).item(), expected, 1e-9 * expected);
}

// Takes five steps, the fourth with a gradient that overflowed. `scales` gets the loss scale after each step.
State scaled_steps(Device device, std::vector<double>& scales) {
  const auto model = many_tensors(DType::f32);
  move_to(*model, device);
  const auto parameters = named_parameters(*model);
  const auto optimizer = make_optimizer(OptimizerConfig{AdamWConfig{}}, parameters);
  Ema ema = testing::make_ema(0.9, *model);
  StepState state(device);
  state.load(1024, kLossScaleGrowthInterval - 2);
  for (int step = 0; step < 5; ++step) {
    set_gradients_on(device, *model, static_cast<std::uint64_t>(step));
    if (step == 3) parameters.back().parameter->grad().slice(0, 2, 3).fill(std::numeric_limits<double>::infinity());
    state.set({.step = step, .lr = 0.01, .slots = {0.9}});
    const TransferStats before = transfer_stats();
    unscale_gradients(parameters, state);
    optimizer->step(state);
    ema.after_step(*model, state);
    update_loss_scale(state);
    EXPECT_EQ(transfer_stats(), before);
    scales.push_back(state.read().loss_scale);
  }
  return left_by(parameters, *optimizer, ema);
}

TEST_F(CudaOptimizer, StepsThatOverflowAreSkipped) {
  std::vector<double> scales;
  std::vector<double> expected_scales;
  const State expected = scaled_steps(Device::cpu(), expected_scales);
  expect_close(scaled_steps(gpu(), scales), expected, 1e-6);
  EXPECT_EQ(expected_scales, (std::vector<double>{1024, 2048, 2048, 1024, 1024}));
  EXPECT_EQ(scales, expected_scales);
}

}  // namespace
}  // namespace tessera::testing
