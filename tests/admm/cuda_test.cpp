// Compares ADMM on a GPU with ADMM on the CPU.
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "admm/projections.h"
#include "core/device/decisions.h"
#include "core/device/transfer_stats.h"
#include "core/linalg/relative_error.h"
#include "tests/admm/quadratic.h"
#include "tests/support/gpu.h"

namespace tessera::testing {
namespace {

class CudaAdmm : public GpuTest {};

// Trains a weight, which fills whole blocks and part of another, for three steps with two updates between them.
State trained(Device device, DType dtype, Tensor& weight) {
  const auto model = one_layer(random_matrix(67, 131, 1, dtype));
  move_to(*model, device);
  AdmmConfig config = admm_config(0.25);
  config.rho_end = 1;
  StepSlots slots;
  Admm admm(config, rank_of_fc(5), *model, {.steps = 3, .steps_per_epoch = 3}, slots);
  admm.on_stage_begin(*model);
  Parameter& parameter = model->child("fc").parameter("weight");
  StepState state(device);
  for (int step = 0; step < 3; ++step) {
    StepStateData data;
    admm.on_step_begin(*model, step, data);
    state.set(data);
    parameter.set_grad(random_matrix(67, 131, 2 + static_cast<std::uint64_t>(step), dtype).to(device));
    const TransferStats before = transfer_stats();
    admm.after_backward(*model, state);
    EXPECT_EQ(transfer_stats(), before);
    const Tensor moved = parameter.value().to(Device::cpu()), gradient = parameter.grad().to(Device::cpu());
    dispatch_real(dtype, "test", [&]<class T>() {
      for (std::int64_t i = 0; i < moved.numel(); ++i) moved.data<T>()[i] -= T(0.1) * gradient.data<T>()[i];
    });
    parameter.set_value(moved.to(device));
    admm.between_steps(*model, step + 1);
  }
  weight = parameter.value().to(Device::cpu());
  return admm.state();
}

TEST_F(CudaAdmm, FollowsTheCpu) {
  for (const auto& [dtype, tolerance] : {std::pair{DType::f64, 1e-9}, std::pair{DType::f32, 1e-4}}) {
    SCOPED_TRACE(str(dtype));
    Tensor on_gpu, on_cpu;
    const State gpu_state = trained(gpu(), dtype, on_gpu), cpu_state = trained(Device::cpu(), dtype, on_cpu);
    EXPECT_LT(linalg::relative_error(on_gpu, on_cpu), tolerance);
    for (const auto& [name, tensor] : cpu_state.tensors) {
      EXPECT_TRUE(gpu_state.tensors.at(name).device().is_cuda()) << name;
      EXPECT_LT(linalg::relative_error(gpu_state.tensors.at(name).to(Device::cpu()), tensor), tolerance) << name;
    }
    EXPECT_EQ(gpu_state.meta.at("rho").as_double(), cpu_state.meta.at("rho").as_double());
  }
}

// Ranks project different layers. If rank 0's clock chose for all, the others would wait for choices that it never makes.
TEST_F(CudaAdmm, ProjectionsReadNoClock) {
  LowRankConfig config;
  config.format = "tucker2";
  const std::vector<ConstrainedLayer> layers{{"conv", low_rank_constraint(config, {{"out", 6}, {"in", 4}})}};
  const Tensor weight = Tensor::empty({64, 3, 3, 64});
  fill_normal(weight, RngStream(1, "test", "kernel"), 0, 1);
  const std::vector<Tensor> weights{weight.to(gpu())};
  const auto measured = [](const auto& project) {
    const DecisionScope decisions({.measure = true});
    project();
    return decisions.log().measured.size();
  };
  EXPECT_EQ(measured([&] { project_all(layers, weights); }), 0u);
  EXPECT_GT(measured([&] { layers[0].constraint->project(weights[0]); }), 0u) << "its products are large enough for one";
}

}  // namespace
}  // namespace tessera::testing
