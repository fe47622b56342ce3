// Training steps on a GPU of networks that are pruned or have sparse layers: they agree with the CPU's, recorded steps have the
// bytes of eager ones, and the masks hold between steps.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "compress/pass_runner.h"
#include "compress/sparsify.h"
#include "core/config/read.h"
#include "core/device/transfer_stats.h"
#include "layers/flatten.h"
#include "tests/support/gpu.h"
#include "tests/train/run/device_steps.h"
#include "train/run/stage_hooks.h"
#include "train/tasks/classification.h"

namespace tessera::testing {
namespace {

const Classification kTask;
constexpr std::int64_t kSteps = 9;
const Shape kImages{16, 13, 13, 3};

struct Trained {
  std::map<std::string, Tensor> values, masks;
};

std::map<std::string, Tensor> masks_of(Module& model) {
  std::map<std::string, Tensor> masks;
  for (const NamedParameter& entry : named_parameters(model)) {
    if (entry.parameter->mask().defined()) masks.emplace(entry.path, entry.parameter->mask().to(Device::cpu()));
  }
  return masks;
}

// Trains a stage of kSteps on the model's device, including the hooks' work between steps.
Trained trained(Module& model, const StageConfig& stage, Device device, bool recorded = true) {
  const std::vector<MakeHook> hooks = stage_hooks(stage, {.results = {}});
  StageTrainer trainer(model, stage.training, kTask, 1, kSteps, kSteps, DType::f32, hooks);
  if (!recorded) trainer.record_with({});
  trainer.begin_stage();
  for (std::int64_t step = 0; step < kSteps; ++step) {
    trainer.step(make_batch(kImages, static_cast<std::uint64_t>(step), device), step, step);
    trainer.between_steps(step + 1);
  }
  trainer.check_finite();
  trainer.end_stage();
  return {.values = values_of(model), .masks = masks_of(model)};
}

void expect_close(const std::map<std::string, Tensor>& got, const std::map<std::string, Tensor>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (const auto& [path, value] : want) EXPECT_LE(relative_error(got.at(path), value), 1e-4) << path;
}

void expect_masked(const Trained& network) {
  for (const auto& [path, mask] : network.masks) {
    const std::vector<float> weight = network.values.at(path).to_vector<float>();
    const std::uint8_t* const kept = mask.data<std::uint8_t>();
    for (std::size_t i = 0; i < weight.size(); ++i) {
      ASSERT_TRUE(kept[i] != 0 || weight[i] == 0) << path << " element " << i;
    }
  }
}

struct PruningCase {
  const char* name;
  const char* block;  // the stage's compression block
  bool adamw = false;
};

std::ostream& operator<<(std::ostream& out, const PruningCase& c) { return out << c.name; }

class CudaPruningStep : public GpuTestWithParam<PruningCase> {
 protected:
  static StageConfig stage() {
    StageConfig stage = read<StageConfig>(parse_json(str(R"({"name": "s", "train": "1e", )", GetParam().block, "}"), "test"));
    stage.training = with_everything();
    if (GetParam().adamw) stage.training.optimizer.form = AdamWConfig{.lr = 0.01, .weight_decay = 1e-3};
    return stage;
  }
};

TEST_P(CudaPruningStep, FollowsTheCpusAndHoldsItsMasks) {
  Trained results[2];
  for (const Device device : {Device::cpu(), gpu()}) {
    const auto model = smooth_network(device);
    results[device.is_cuda() ? 1 : 0] = trained(*model, stage(), device);
  }
  EXPECT_FALSE(results[1].masks.empty());
  expect_same(results[1].masks, results[0].masks);
  expect_close(results[1].values, results[0].values);
  expect_masked(results[1]);
}

TEST_P(CudaPruningStep, RecordedStepsHaveTheBytesOfEagerOnes) {
  Trained results[2];
  for (const bool recorded : {false, true}) {
    const auto model = smooth_network(gpu());
    results[recorded ? 1 : 0] = trained(*model, stage(), gpu(), recorded);
  }
  expect_same(results[1].values, results[0].values);
  expect_same(results[1].masks, results[0].masks);
}

constexpr const char* kSrSte =
    R"("prune": {"layers": ["tucker", "fc"], "pattern": "n_m", "n_m": "1:2", "sr_ste": {"lambda": 0.1, "freeze": "6s"}})";

INSTANTIATE_TEST_SUITE_P(
    Cuda, CudaPruningStep,
    ::testing::Values(
        PruningCase{"unstructured",
                    R"("prune": {"layers": ["conv", "tucker"], "sparsity": {"target": 0.8, "end": "8s", "every": "2s"}})"},
        PruningCase{
            "tiles",
            R"("prune": {"layers": "fc", "pattern": "tile", "group": 2, "sparsity": {"target": 0.5, "end": "8s", "every": "3s"}})"},
        PruningCase{"sr_ste", kSrSte}, PruningCase{"sr_ste_decoupled", kSrSte, true},
        PruningCase{"rigl", R"("rigl": {"layers": ["conv", "tucker"], "sparsity": 0.5, "every": "2s", "end": "8s"})"}),
    [](const auto& test) { return std::string(test.param.name); });

// The smooth network with a third of each weight's elements: a convolution, a chain of three and a linear layer.
std::unique_ptr<Module> sparse_network(Device device) {
  auto model = smooth_network(Device::cpu());
  for (const NamedParameter& entry : named_parameters(*model)) {
    const Tensor& weight = entry.parameter->value();
    if (weight.rank() < 2) continue;
    const Tensor mask = Tensor::zeros(weight.shape(), DType::u8);
    for (std::int64_t i = 0; i < mask.numel(); i += 3) mask.data<std::uint8_t>()[i] = 1;
    entry.parameter->set_mask(mask);
  }
  SparsifyPass pass({});
  const PassReport report = run_pass(model, pass, kImages);
  EXPECT_EQ(report.layers.size(), 3u);
  for (const LayerReport& layer : report.layers) EXPECT_EQ(layer.decision, "sparse") << layer.path << ": " << layer.reason;
  move_to(*model, device);
  return model;
}

class CudaSparseLayers : public GpuTest {};

TEST_F(CudaSparseLayers, StepsFollowTheCpus) {
  Trained results[2];
  StageConfig stage;
  stage.training = with_everything();
  for (const Device device : {Device::cpu(), gpu()}) {
    const auto model = sparse_network(device);
    results[device.is_cuda() ? 1 : 0] = trained(*model, stage, device);
  }
  expect_close(results[1].values, results[0].values);
}

TEST_F(CudaSparseLayers, RecordedStepsHaveTheBytesOfEagerOnesAndReadNothing) {
  Trained results[2];
  StageConfig stage;
  stage.training = with_everything();
  for (const bool recorded : {false, true}) {
    const auto model = sparse_network(gpu());
    results[recorded ? 1 : 0] = trained(*model, stage, gpu(), recorded);
    StageTrainer trainer(*model, stage.training, kTask, 1, kSteps, kSteps);
    if (!recorded) trainer.record_with({});
    train(trainer, kImages, 0, 4);
    const Batch batch = make_batch(kImages, 4, gpu());
    const TransferStats before = transfer_stats();
    for (std::int64_t step = 4; step < kSteps; ++step) trainer.step(batch, step, step);
    EXPECT_EQ(transfer_stats(), before) << "no step waits for the device";
  }
  expect_same(results[1].values, results[0].values);
}

}  // namespace
}  // namespace tessera::testing
