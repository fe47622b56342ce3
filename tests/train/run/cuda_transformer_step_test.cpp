// Training steps of transformers on a GPU: they agree with the CPU's, recorded steps have the bytes of eager ones, and no step
// waits for the device or reads from it.
#include <gtest/gtest.h>

#include <ostream>
#include <string>

#include "compress/factorise.h"
#include "compress/pass_runner.h"
#include "core/config/read.h"
#include "core/device/transfer_stats.h"
#include "core/ops/cross_entropy.h"
#include "layers/models/model.h"
#include "tests/support/gpu.h"
#include "tests/train/run/device_steps.h"
#include "train/tasks/classification.h"
#include "train/tasks/masked_token.h"
#include "train/tasks/next_token.h"

namespace tessera::testing {
namespace {

constexpr std::int64_t kSteps = 6, kSamples = 5, kTokens = 13, kVocabulary = 37;
const Shape kImages{kSamples, 8, 8, 3};

struct TransformerCase {
  const char* name;
  const char* model;
  const char* task = "next-token";
  bool factored = false;  // factors the MLPs
};

std::ostream& operator<<(std::ostream& out, const TransformerCase& c) { return out << c.name; }

constexpr const char* kGpt = R"({"name": "gpt", "layers": 2, "width": 24, "heads": 3, "vocabulary": 37, "length": 16})";
constexpr const char* kLlama =
    R"({"name": "gpt", "layers": 2, "width": 32, "heads": 4, "kv_heads": 2, "hidden": 40, "vocabulary": 37, "norm": "rms_norm",
        "activation": "swiglu", "positions": "rotary", "bias": false, "tied": false, "window": 5})";
constexpr const char* kGptWithDropout =
    R"({"name": "gpt", "layers": 2, "width": 24, "heads": 3, "vocabulary": 37, "length": 16, "dropout": 0.2, "recompute": true})";
constexpr const char* kSparseGpt =
    R"({"name": "gpt", "layers": 2, "width": 24, "heads": 3, "vocabulary": 37, "length": 16, "sparse": {"band": 3, "density": 0.3}})";
constexpr const char* kBert = R"({"name": "bert", "layers": 2, "width": 24, "heads": 3, "vocabulary": 37, "length": 16})";
constexpr const char* kVit = R"({"name": "vit", "layers": 2, "width": 24, "heads": 3, "patch": 2, "classes": 3})";

const TransformerCase kCases[]{{"Gpt", kGpt},
                               {"Llama", kLlama},
                               {"GptWithDropout", kGptWithDropout},
                               {"SparseGpt", kSparseGpt},
                               {"FactoredGpt", kGpt, "next-token", true},
                               {"Bert", kBert, "masked-token"},
                               {"Vit", kVit, "classification"}};

const Task& task_of(const TransformerCase& c) {
  static const Classification classes;
  static const MaskedToken masked;
  static const NextToken next;
  const std::string_view name = c.task;
  if (name == classes.name()) return classes;
  return name == masked.name() ? static_cast<const Task&>(masked) : next;
}

Batch batch_of(const TransformerCase& c, std::int64_t step, Device device) {
  if (task_of(c).name() == Classification().name()) return make_batch(kImages, static_cast<std::uint64_t>(step), device);
  Batch batch{{"tokens", Tensor::empty({kSamples, kTokens}, DType::i64)},
              {"targets", Tensor::empty({kSamples, kTokens}, DType::i64)}};
  for (std::int64_t i = 0; i < kSamples * kTokens; ++i) {
    batch.at("tokens").data<std::int64_t>()[i] = (7 * i + 3 * step + i * i) % kVocabulary;
    const bool asked = c.task != std::string_view("masked-token") || i % 4 == 1;
    batch.at("targets").data<std::int64_t>()[i] = asked ? (5 * i + step) % kVocabulary : CrossEntropyOptions().ignore_index;
  }
  return batch.to(device);
}

std::unique_ptr<Module> network_of(const TransformerCase& c, Device device) {
  const ModelConfig config = read<ModelConfig>(parse_json(c.model, "test"));
  const Shape input = c.task == std::string_view("classification") ? kImages : Shape{kSamples, kTokens};
  std::unique_ptr<Module> model = build_model(config, input);
  initialize(*model, 1);
  if (c.factored) {
    FactorisePass pass(read<FactoriseConfig>(
        parse_json(R"({"layers": "blocks.*.mlp.*", "format": "svd", "ranks": {"rank": 6}, "keep": "always"})", "test")));
    const PassReport report = run_pass(model, pass, input);
    EXPECT_EQ(report.layers.size(), 4u);
    for (const LayerReport& layer : report.layers) EXPECT_EQ(layer.decision, "factored") << layer.path << ": " << layer.reason;
  }
  move_to(*model, device);
  return model;
}

TrainingConfig training() {
  TrainingConfig config = with_everything();
  config.optimizer.form = AdamWConfig{.lr = 0.003, .weight_decay = 1e-2};
  config.micro_batch = 3;  // the last micro-batch has 2 samples
  return config;
}

class CudaTransformerStep : public GpuTestWithParam<TransformerCase> {};

// AdamW is not used: it takes full steps even along a gradient that is only rounding.
TEST_P(CudaTransformerStep, FollowsTheCpus) {
  std::map<std::string, Tensor> results[2];
  for (const Device device : {Device::cpu(), gpu()}) {
    const auto model = network_of(GetParam(), device);
    StageTrainer trainer(*model, with_everything(), task_of(GetParam()), 1, kSteps, kSteps);
    for (std::int64_t step = 0; step < 3; ++step) trainer.step(batch_of(GetParam(), step, device), step, step);
    results[device.is_cuda() ? 1 : 0] = values_of(*model);
  }
  for (const auto& [path, value] : results[0]) EXPECT_LE(relative_error(results[1].at(path), value), 1e-4) << path;
}

TEST_P(CudaTransformerStep, RecordedStepsHaveTheBytesOfEagerOnes) {
  for (const DType compute : {DType::f32, DType::bf16}) {
    SCOPED_TRACE(str(compute));
    std::map<std::string, Tensor> results[2];
    int recordings = 0;
    for (const bool recorded : {false, true}) {
      const auto model = network_of(GetParam(), gpu());
      StageTrainer trainer(*model, training(), task_of(GetParam()), 1, kSteps, kSteps, compute);
      trainer.record_with(recorded ? counting(recordings) : StepGraph::Recorder());
      for (std::int64_t step = 0; step < kSteps; ++step) trainer.step(batch_of(GetParam(), step, gpu()), step, step);
      EXPECT_NO_THROW(trainer.take_mean_loss());
      results[recorded ? 1 : 0] = values_of(*model);
    }
    EXPECT_EQ(recordings, 1);
    expect_same(results[0], results[1]);
  }
}

TEST_P(CudaTransformerStep, NeitherWaitsNorReads) {
  const auto model = network_of(GetParam(), gpu());
  StageTrainer trainer(*model, training(), task_of(GetParam()), 1, kSteps, kSteps);
  for (std::int64_t step = 0; step < 4; ++step) trainer.step(batch_of(GetParam(), step, gpu()), step, step);
  const Batch batch = batch_of(GetParam(), 4, gpu());
  const TransferStats before = transfer_stats();
  for (std::int64_t step = 4; step < kSteps; ++step) trainer.step(batch, step, step);
  EXPECT_EQ(transfer_stats(), before);
}

INSTANTIATE_TEST_SUITE_P(Cuda, CudaTransformerStep, ::testing::ValuesIn(kCases),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace tessera::testing
