// Training steps on a GPU: recorded and eager steps have the same bytes, neither waits nor reads back, both agree with the CPU.
#include <gtest/gtest.h>

#include <map>

#include "core/device/decisions.h"
#include "core/device/precision.h"
#include "core/device/transfer_stats.h"
#include "layers/dropout.h"
#include "layers/linear.h"
#include "layers/models/model.h"
#include "layers/scores.h"
#include "layers/sequential.h"
#include "tests/support/gpu.h"
#include "tests/support/relative_error.h"
#include "tests/train/run/device_steps.h"
#include "train/run/stage_hooks.h"
#include "train/run/stage_trainer.h"
#include "train/tasks/classification.h"

namespace tessera::testing {
namespace {

const Classification kTask;

constexpr std::int64_t kSteps = 8;
const Shape kImages{8, 16, 16, 3};

std::unique_ptr<Module> residual_network(Device device, std::uint64_t seed = 1) {
  auto model = build_model(named_model("resnet20", 10), kImages);
  initialize(*model, seed);
  move_to(*model, device);
  return model;
}

// The dropout mask depends on the step, which a replay must read from the device.
std::unique_ptr<Module> network_with_dropout(Device device) {
  auto model = std::make_unique<Sequential>();
  model->add_child("fc1", std::make_unique<Linear>(LinearConfig{.in = 40, .out = 33}));
  model->add_child("drop", std::make_unique<Dropout>(DropoutConfig{.p = 0.5}));
  model->add_child("fc2", std::make_unique<Linear>(LinearConfig{.in = 33, .out = 3}));
  initialize(*model, 1);
  move_to(*model, device);
  return model;
}

// The work between two steps of a run: a log line, an evaluation of the averages on a batch of another shape, and a save.
void interrupt(StageTrainer& trainer, Module& model, DType compute) {
  trainer.take_mean_loss();
  trainer.check_finite();
  trainer.with_evaluation_weights([&] {
    const NoGrad no_grad;
    scores(model, make_batch({5, 16, 16, 3}, 99, Device::cuda()).parts(), Context{}, compute).value().to(Device::cpu());
  });
  trainer.state();
}

class CudaStep : public GpuTestWithParam<std::string> {
 protected:
  DType compute() const { return compute_dtype(GetParam(), gpu()); }
};

TEST_P(CudaStep, RecordedStepsHaveTheBytesOfEagerOnes) {
  const Tf32Products products(GetParam() == "tf32");
  std::map<std::string, Tensor> results[2];
  int recordings = 0;
  for (const bool recorded : {false, true}) {
    const auto model = residual_network(gpu());
    StageTrainer trainer(*model, with_everything(), kTask, 1, kSteps, kSteps, compute());
    trainer.record_with(recorded ? counting(recordings) : StepGraph::Recorder());
    train(trainer, kImages, 0, 5);
    EXPECT_NO_THROW(interrupt(trainer, *model, compute()));
    train(trainer, kImages, 5, kSteps);
    EXPECT_NO_THROW(trainer.take_mean_loss());
    results[recorded ? 1 : 0] = values_of(*model);
  }
  EXPECT_EQ(recordings, 1);
  expect_same(results[0], results[1]);
}

// The teacher's forward pass is part of the step, so that it is recorded too.
TEST_P(CudaStep, RecordedStepsOfADistillingStageHaveTheBytesOfEagerOnes) {
  const Tf32Products products(GetParam() == "tf32");
  const auto teacher = residual_network(gpu(), 2);
  const auto taught = values_of(*teacher);
  StageConfig stage;
  stage.distill = DistillConfig{.from = "before", .temperature = 3, .weight = 0.7};
  std::map<std::string, Tensor> results[3];  // eager, recorded, without the teacher
  int recordings = 0;
  for (int way = 0; way < 3; ++way) {
    const auto model = residual_network(gpu());
    std::vector<MakeHook> hooks;
    if (way < 2) hooks = stage_hooks(stage, {.results = {}, .teacher = teacher.get(), .compute = compute()});
    StageTrainer trainer(*model, with_everything(), kTask, 1, kSteps, kSteps, compute(), hooks);
    trainer.record_with(way == 1 ? counting(recordings) : StepGraph::Recorder());
    train(trainer, kImages, 0, 4);
    const Batch batch = make_batch(kImages, 4, gpu());
    const TransferStats before = transfer_stats();
    for (std::int64_t step = 4; step < kSteps; ++step) trainer.step(batch, step, step);
    EXPECT_EQ(transfer_stats(), before) << "no step waits for the device";
    results[way] = values_of(*model);
  }
  EXPECT_EQ(recordings, 1);
  expect_same(results[0], results[1]);
  EXPECT_FALSE(same_bytes(results[0].at("fc.weight"), results[2].at("fc.weight"))) << "the teacher counts";
  expect_same(values_of(*teacher), taught);
}

TEST_P(CudaStep, NeitherWaitsNorReadsRecordedOrNot) {
  const Tf32Products products(GetParam() == "tf32");
  for (const bool recorded : {true, false}) {
    SCOPED_TRACE(recorded ? "recorded" : "eager");
    const auto model = residual_network(gpu());
    StageTrainer trainer(*model, with_everything(), kTask, 1, kSteps, kSteps, compute());
    if (!recorded) trainer.record_with({});
    train(trainer, kImages, 0, 4);
    const Batch batch = make_batch(kImages, 4, gpu());
    const TransferStats before = transfer_stats();
    for (std::int64_t step = 4; step < kSteps; ++step) trainer.step(batch, step, step);
    EXPECT_EQ(transfer_stats(), before);
  }
}

TEST_P(CudaStep, GoesOnFromItsState) {
  const Tf32Products products(GetParam() == "tf32");
  const auto whole = residual_network(gpu());
  StageTrainer through(*whole, with_everything(), kTask, 1, kSteps, kSteps, compute());
  train(through, kImages, 0, kSteps);

  const auto first = residual_network(gpu());
  StageTrainer stopped(*first, with_everything(), kTask, 1, kSteps, kSteps, compute());
  train(stopped, kImages, 0, 5);
  std::map<std::string, State> saved = stopped.state();
  for (auto& [name, part] : saved) {
    for (auto& [path, tensor] : part.tensors) tensor = tensor.to(Device::cpu());
  }
  const auto values = values_of(*first);
  const auto second = residual_network(Device::cpu());
  for (const NamedParameter& entry : named_parameters(*second)) entry.parameter->set_value(values.at(entry.path));
  for (const NamedBuffer& entry : named_buffers(*second)) entry.buffer->value.copy_from(values.at(entry.path));
  move_to(*second, gpu());
  StageTrainer resumed(*second, with_everything(), kTask, 1, kSteps, kSteps, compute());
  resumed.load_state(saved);
  train(resumed, kImages, 5, kSteps);
  expect_same(values_of(*second), values_of(*whole));
}

INSTANTIATE_TEST_SUITE_P(Cuda, CudaStep, ::testing::Values("f32", "tf32", "bf16", "f16"),
                         [](const auto& test) { return test.param; });

class CudaSteps : public GpuTest {};

TEST_F(CudaSteps, FollowTheCpus) {
  std::map<std::string, Tensor> results[2];
  for (const Device device : {Device::cpu(), gpu()}) {
    const auto model = smooth_network(device);
    TrainingConfig config = with_everything();
    config.micro_batch = 8;
    StageTrainer trainer(*model, config, kTask, 1, kSteps, kSteps);
    for (std::int64_t step = 0; step < 3; ++step) {
      trainer.step(make_batch({16, 13, 13, 3}, static_cast<std::uint64_t>(step), device), step, step);
    }
    results[device.is_cuda() ? 1 : 0] = values_of(*model);
  }
  for (const auto& [path, value] : results[0]) EXPECT_LE(relative_error(results[1].at(path), value), 1e-4) << path;
}

TEST_F(CudaSteps, DropoutFollowsTheStepInReplays) {
  std::map<std::string, Tensor> results[2];
  for (const bool recorded : {false, true}) {
    const auto model = network_with_dropout(gpu());
    TrainingConfig config = with_everything();
    config.micro_batch = 6;
    StageTrainer trainer(*model, config, kTask, 1, kSteps, kSteps);
    if (!recorded) trainer.record_with({});
    train(trainer, {18, 40}, 0, kSteps);
    results[recorded ? 1 : 0] = values_of(*model);
  }
  expect_same(results[0], results[1]);
}

TEST_F(CudaSteps, AnotherShapeIsRecordedAnew) {
  int recordings = 0;
  const auto model = network_with_dropout(gpu());
  StageTrainer trainer(*model, with_everything(), kTask, 1, 40, 40);
  trainer.record_with(counting(recordings));
  train(trainer, {18, 40}, 0, 5);
  EXPECT_EQ(recordings, 1);
  train(trainer, {7, 40}, 5, 6);  // the short last batch of an epoch
  train(trainer, {18, 40}, 6, 8);
  EXPECT_EQ(recordings, 1);
  train(trainer, {9, 40}, 8, 13);
  EXPECT_EQ(recordings, 2);
}

}  // namespace
}  // namespace tessera::testing
