// Outputs through the C functions equal those of the network's forward pass with batch norms folded, bit for bit.
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <limits>

#include "core/cpu/onednn_version.h"
#include "core/device/constant_weights.h"
#include "core/device/decisions.h"
#include "core/storage.h"
#include "core/support/log.h"
#include "layers/fold.h"
#include "layers/models/gpt.h"
#include "layers/scores.h"
#include "tests/capi/networks.h"
#include "tests/support/scopes.h"
#include "train/checkpoint/manifest.h"
#include "train/data/glyphs.h"
#include "train/data/labelled_images.h"
#include "train/run/environment.h"
#include "train/run/network_file.h"
#include "train/run/saved_model.h"
#include "train/run/saved_point.h"

namespace tessera::capi::testing {
namespace {

namespace fs = std::filesystem;

// Uses the setting of the C functions: one thread, no choice by a clock, constant weights.
std::vector<float> forward(Module& model, const Tensor& x, DType compute = DType::f32) {
  set_compute_threads(1);
  const NoGrad no_grad;
  const ThreadDecisions none({});
  const ConstantWeights constant;
  const std::vector<NamedTensor> parts{{"x", x}};
  return tessera::scores(*for_inference(model), parts, Context{}, compute).value().to(DType::f32).to_vector<float>();
}

std::unique_ptr<Module> model_of(const std::string& run) {
  return evaluation_model(load_newest(real_vfs(), RunFolder::open(real_vfs(), run)));
}

TEST(CRun, SaysWhatTheForwardOfADenseFactoredAndSparseNetworkSays) {
  for (const std::string& stages : {kDense, kFactored, kSparse}) {
    SCOPED_TRACE(stages);
    const TemporaryFolder folder;
    const std::string run = trained(folder.path(), experiment(stages));
    const Loaded network(run);
    const std::unique_ptr<Module> model = model_of(run);
    for (const std::int64_t batch : {1, 3}) {
      Buffer<float> images = some_images(batch);
      const Tensor x = Tensor::from(images.values, {batch, 28, 28, 1});
      EXPECT_EQ(scores_of(network, images), forward(*model, x)) << "batch " << batch;
    }
  }
}

TEST(CRun, ComputesInThePrecisionThatItIsTold) {
  if (!cpu::onednn_has_bf16()) GTEST_SKIP() << "the processor has neither avx512_bf16 nor AMX";
  const Loaded network(dense_run(), 1, "bf16");
  EXPECT_EQ(network.description().at("precision").as_string(), "bf16");
  Buffer<float> images = some_images(3);
  const std::unique_ptr<Module> model = model_of(dense_run());
  const Tensor x = Tensor::from(images.values, {3, 28, 28, 1});
  const std::vector<float> said = scores_of(network, images);
  EXPECT_EQ(said, forward(*model, x, DType::bf16));
  EXPECT_NE(said, forward(*model, x));
}

TEST(CRun, TakesTheAveragesInsideAStageWithAverages) {
  const TemporaryFolder folder;
  const std::string run = trained(folder.path(), experiment("[{name: dense, train: 3s, ema: {decay: 0.5, statistics: 0}}]"));
  const fs::path inside = fs::path(run) / "checkpoints" / "step-00000002";
  const Checkpoint checkpoint = load_folder(real_vfs(), inside, read_manifest(real_vfs(), inside));
  Buffer<float> images = some_images(2);
  const Tensor x = Tensor::from(images.values, {2, 28, 28, 1});
  const std::vector<float> said = scores_of(Loaded(inside), images);
  EXPECT_EQ(said, forward(*evaluation_model(checkpoint), x));
  EXPECT_NE(said, forward(*saved_model(checkpoint), x)) << "the weights that training goes on with";
}

TEST(CRun, ReadsPixelsAsTheDataSetOfTheRunDoes) {
  const Loaded network(dense_run());
  const Value preprocessing = network.description().at("preprocessing");
  const Normalization normalization{{preprocessing.at("mean").as_list().front().as_double()},
                                    {preprocessing.at("std").as_list().front().as_double()}};
  const LabelledImages images(std::make_shared<MemoryDataset>(make_glyphs(1, "test", 3)), normalization);
  const Batch batch = Batch::empty(images.fields(), 3);
  images.assemble(std::vector<std::int64_t>{0, 1, 2}, {}, batch);
  Buffer<std::uint8_t> pixels({3, 28, 28, 1}, 0);
  for (std::int64_t i = 0; i < 3; ++i)
    draw_glyph(1, "test", i, std::span(pixels.values).subspan(static_cast<std::size_t>(i) * 784, 784));
  EXPECT_EQ(scores_of(network, pixels), forward(*model_of(dense_run()), batch.input()));
}

TEST(CRun, ReadsTheInputWhereItIsAndLeavesItAlone) {
  const Loaded network(dense_run());
  Buffer<float> images = some_images(64);
  const std::vector<float> before = images.values;
  const std::vector<float> said = scores_of(network, images);  // prepares all that this batch needs
  const std::size_t in_use = memory_stats(Device::cpu()).in_use;
  const auto peak_of = [&](auto& input) {
    reset_peak_memory(Device::cpu());
    scores_of(network, input);
    EXPECT_EQ(memory_stats(Device::cpu()).in_use, in_use) << "nothing of a run stays";
    return memory_stats(Device::cpu()).peak;
  };
  Buffer<std::uint8_t> pixels({64, 28, 28, 1}, 7);
  const std::size_t of_pixels = peak_of(pixels), of_floats = peak_of(images);
  EXPECT_EQ(of_pixels - of_floats, 64 * 784 * sizeof(float)) << "pixels become a tensor, floats are one already";
  EXPECT_EQ(images.values, before);
  EXPECT_EQ(scores_of(network, images), said);
}

// A network that writes text, and samples whose length differs from that in training.
class CTokens : public ::testing::Test {
 protected:
  static std::unique_ptr<Module> network() {
    models::Gpt config{.layers = 1, .width = 16, .heads = 2, .vocabulary = 50};
    config.length = 12;
    std::unique_ptr<Module> gpt = config.build({1, 8});
    initialize(*gpt, 3);
    return gpt;
  }
  std::string written() const {
    const std::string path = (folder_.path() / "gpt.safetensors").string();
    write_network(real_vfs(), *gpt_, {1, 8}, path);
    return path;
  }
  void SetUp() override {
    for (std::size_t i = 0; i < tokens_.values.size(); ++i) tokens_.values[i] = static_cast<std::int64_t>(i * 7 % 50);
  }
  // The error message of the C functions, or "" for success.
  std::string run(std::vector<tessera_tensor> inputs) {
    const tessera_tensor out = scores_.tensor();
    const bool ran = tessera_run(loaded_.get(), inputs.data(), static_cast<std::int32_t>(inputs.size()), &out, 1) == TESSERA_OK;
    return ran ? "" : tessera_last_error();
  }

  const TemporaryFolder folder_;
  const std::unique_ptr<Module> gpt_ = network();
  const Loaded loaded_{written()};
  Buffer<std::int64_t> tokens_{{2, 5}, 0};
  Buffer<float> scores_{{2, 5, 50}, -1};
};

TEST_F(CTokens, MayBeOfAnotherLength) {
  const Value row = loaded_.description().at("inputs").as_list().front();
  EXPECT_EQ(row.at("limit").as_int(), 50);
  EXPECT_EQ(row.at("longest").as_int(), 12);
  const tessera_tensor in = tokens_.tensor();
  std::int64_t shape[TESSERA_MOST_AXES];
  std::int32_t rank = 0;
  ASSERT_EQ(tessera_output_shape(loaded_.get(), &in, 1, shape, &rank), TESSERA_OK) << tessera_last_error();
  ASSERT_EQ(std::vector(shape, shape + rank), (std::vector<std::int64_t>{2, 5, 50}));
  ASSERT_EQ(run({in}), "");
  EXPECT_EQ(scores_.values, forward(*gpt_, Tensor::from(tokens_.values, {2, 5})));
}

// A mask that shows every key changes nothing. One that hides the second key of each sample does. Inputs have no order.
TEST_F(CTokens, HaveAKeyMask) {
  Buffer<std::uint8_t> mask({2, 5}, 1);
  mask.name = "key_mask";
  tokens_.name = "tokens";
  ASSERT_EQ(run({tokens_.tensor()}), "");
  const std::vector<float> unmasked = scores_.values;
  ASSERT_EQ(run({mask.tensor(), tokens_.tensor()}), "");
  for (std::size_t i = 0; i < unmasked.size(); ++i) ASSERT_NEAR(scores_.values[i], unmasked[i], 1e-5);
  mask.values[1] = mask.values[6] = 0;
  ASSERT_EQ(run({mask.tensor(), tokens_.tensor()}), "");
  EXPECT_NE(scores_.values, unmasked);
}

TEST_F(CTokens, AreBelowTheirLimit) {
  tokens_.values[3] = 50;
  const std::string message = run({tokens_.tensor()});
  EXPECT_NE(message.find("id out of range: ids[3] is 50; needs 0 to 49"), std::string::npos) << message;
}

// Saves the run's newest checkpoint again after `change` has edited it.
void change_newest(const std::string& run, const std::function<void(Checkpoint&)>& change) {
  const RunLock lock(run);
  CheckpointStore store(real_vfs(), RunFolder::open(real_vfs(), run).checkpoints());
  store.open_for_writing(lock);
  Checkpoint newest = store.load_latest();
  change(newest);
  store.save(newest.step, newest.parts, newest.manifest);
}

TEST(CRun, RefusesANetworkWithANaN) {
  const TemporaryFolder folder;
  const std::string run = trained(folder.path(), experiment(kDense));
  change_newest(run, [](Checkpoint& newest) {
    newest.parts.at("model").tensors.at("fc.bias") = Tensor::full({10}, std::numeric_limits<float>::quiet_NaN());
  });
  tessera_network* network = nullptr;
  EXPECT_EQ(tessera_load(run.c_str(), nullptr, &network), TESSERA_BAD_FILE);
  EXPECT_NE(std::string(tessera_last_error()).find("fc.bias"), std::string::npos) << tessera_last_error();
}

// A choice that no processor offers gives a warning when it is looked up.
TEST(CRun, TakesTheDecisionsOfTheCheckpoint) {
  const TemporaryFolder folder;
  const std::string run = trained(folder.path(), experiment(kDense));
  std::string key, warning;  // of the folded network
  const tessera::testing::LogSinkScope sink([&](LogLevel level, std::string_view text) {
    const std::string_view prefix = "decisions: conv2d";
    if (!text.starts_with(prefix)) return;
    if (level == LogLevel::debug) key = text.substr(11, text.rfind(": ") - 11);
    if (level == LogLevel::warning) warning = text;
  });
  Buffer<float> images = some_images(8);
  scores_of(Loaded(run), images);
  ASSERT_FALSE(key.empty()) << "conv2 asks for a choice";
  change_newest(run, [&](Checkpoint& newest) {
    Value* const decisions = newest.manifest.find("decisions");
    ASSERT_NE(decisions, nullptr);
    decisions->find("decisions")->set(key, "abacus");
  });
  scores_of(Loaded(run), images);
  EXPECT_TRUE(warning.starts_with("decisions: " + key + " was decided as 'abacus'")) << warning;
}

TEST(CRun, TakesTheThreadsThatItIsTold) {
  const Loaded network(dense_run());
  Buffer<float> images = some_images(3);
  const std::vector<float> one = scores_of(network, images);
  const std::set<std::string> before = threads_of_process();
  ASSERT_EQ(tessera_set_threads(network.get(), 3), TESSERA_OK);
  const std::vector<float> two = scores_of(network, images);
  EXPECT_EQ(threads_since(before, 2).size(), 2U) << "two beside the one that there was";
  for (std::size_t i = 0; i < one.size(); ++i) ASSERT_NEAR(two[i], one[i], 1e-5);
  ASSERT_EQ(tessera_set_threads(network.get(), 1), TESSERA_OK);
  EXPECT_EQ(scores_of(network, images), one);
}

}  // namespace
}  // namespace tessera::capi::testing
