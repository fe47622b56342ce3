// Updates on a GPU against the CPU's, which follow references in double.
#include <gtest/gtest.h>

#include <functional>

#include "core/transfer_stats.h"
#include "optim/builtin.h"
#include "optim/ema.h"
#include "optim/grad_clip.h"
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

// What a run of clipped, masked and averaged steps leaves behind: weights, optimiser state, averages.
State run_steps(const OptimizerConfig& config, DType dtype, Device device) {
  const auto model = make_model(dtype);
  model->child("conv").parameter("weight").set_mask(every_third_off({3, 5}));
  move_to(*model, device);
  const auto parameters = named_parameters(*model);
  const auto optimizer = make_optimizer(config, parameters);
  Ema ema({.decay = 0.9}, *model);
  StepState state(device);
  for (int step = 0; step < kSteps; ++step) {
    set_gradients(*model, static_cast<std::uint64_t>(step));
    for (const NamedParameter& named : parameters) named.parameter->set_grad(named.parameter->grad().to(device));
    state.set({.step = step, .lr = 0.1 / (1 + step), .ema_decay = 0.9});
    const TransferStats before = transfer_stats();
    clip_grad_norm(parameters, 1.5);
    optimizer->step(state);
    ema.after_step(*model, state);
    EXPECT_EQ(transfer_stats(), before);
  }
  State result = optimizer->state();
  for (const NamedParameter& named : parameters) result.tensors.emplace("value." + named.path, named.parameter->value());
  for (const auto& [path, average] : ema.state().tensors) result.tensors.emplace("average." + path, average);
  return result;
}

// In double, a last bit of beta^t is a thousand of 1 - beta^t.
void expect_same_steps(const OptimizerConfig& config, Device gpu) {
  for (const auto& [dtype, tolerance] : {std::pair{DType::f64, 1e-12}, std::pair{DType::f32, 1e-6}}) {
    SCOPED_TRACE(str(dtype));
    const State expected = run_steps(config, dtype, Device::cpu());
    const State got = run_steps(config, dtype, gpu);
    ASSERT_EQ(got.tensors.size(), expected.tensors.size());
    for (const auto& [name, tensor] : expected.tensors) {
      EXPECT_LE(relative_error(got.tensors.at(name), tensor), tolerance) << name;
    }
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

TEST_F(CudaOptimizer, NormsAreOfAllGradientsTogether) {
  const auto model = make_model(DType::f32);
  move_to(*model, gpu());
  set_gradients(*model, 3);
  const double expected = grad_norm(named_parameters(*model)).item();
  for (const NamedParameter& named : named_parameters(*model)) named.parameter->set_grad(named.parameter->grad().to(gpu()));
  EXPECT_NEAR(grad_norm(named_parameters(*model)).item(), expected, 1e-9 * expected);
}

}  // namespace
}  // namespace tessera::testing
