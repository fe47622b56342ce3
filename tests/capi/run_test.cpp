// What a network says through the C functions is what its own forward says, bit for bit.
#include <gtest/gtest.h>

#include "core/device/constant_weights.h"
#include "core/device/decisions.h"
#include "core/storage.h"
#include "core/support/log.h"
#include "layers/models/gpt.h"
#include "layers/scores.h"
#include "tests/capi/networks.h"
#include "tests/support/scopes.h"
#include "train/data/glyphs.h"
#include "train/data/labelled_images.h"
#include "train/run/environment.h"
#include "train/run/network_file.h"
#include "train/run/saved_model.h"
#include "train/run/saved_point.h"

namespace tessera::capi::testing {
namespace {

// One thread, no choice by a clock, weights that stay: the setting of the C functions.
std::vector<float> forward(Module& model, const Tensor& x) {
  set_compute_threads(1);
  const NoGrad no_grad;
  const ThreadDecisions none({});
  const ConstantWeights constant;
  const std::vector<NamedTensor> parts{{"x", x}};
  return tessera::scores(model, parts, Context{}, DType::f32).value().to_vector<float>();
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
  const std::vector<float> said = scores_of(network, images);  // what is prepared for the batch is there now
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

TEST(CRun, TokensMayBeOfAnotherLengthAndHaveAKeyMask) {
  const TemporaryFolder folder;
  const std::string path = (folder.path() / "gpt.safetensors").string();
  models::Gpt config{.layers = 1, .width = 16, .heads = 2, .vocabulary = 50};
  config.length = 12;
  const std::unique_ptr<Module> gpt = config.build({1, 8});
  initialize(*gpt, 3);
  write_network(real_vfs(), *gpt, {1, 8}, path);
  const Loaded network(path);
  const Value tokens_row = network.description().at("inputs").as_list().front();
  EXPECT_EQ(tokens_row.at("limit").as_int(), 50);
  EXPECT_EQ(tokens_row.at("longest").as_int(), 12);

  Buffer<std::int64_t> tokens({2, 5}, 0);
  for (std::size_t i = 0; i < tokens.values.size(); ++i) tokens.values[i] = static_cast<std::int64_t>(i * 7 % 50);
  tessera_tensor in = tokens.tensor();
  std::int64_t shape[TESSERA_MOST_AXES];
  std::int32_t rank = 0;
  ASSERT_EQ(tessera_output_shape(network.get(), &in, 1, shape, &rank), TESSERA_OK) << tessera_last_error();
  ASSERT_EQ(std::vector(shape, shape + rank), (std::vector<std::int64_t>{2, 5, 50}));
  Buffer<float> scores({2, 5, 50}, -1);
  const tessera_tensor out = scores.tensor();
  ASSERT_EQ(tessera_run(network.get(), &in, 1, &out, 1), TESSERA_OK) << tessera_last_error();
  EXPECT_EQ(scores.values, forward(*gpt, Tensor::from(tokens.values, {2, 5})));

  // A mask in which all is seen changes nothing, one that hides the first key of each sample does; inputs have no order.
  Buffer<std::uint8_t> mask({2, 5}, 1);
  mask.name = "key_mask";
  in.name = "tokens";
  std::vector<tessera_tensor> both{mask.tensor(), in};
  const std::vector<float> unmasked = scores.values;
  ASSERT_EQ(tessera_run(network.get(), both.data(), 2, &out, 1), TESSERA_OK) << tessera_last_error();
  for (std::size_t i = 0; i < unmasked.size(); ++i) ASSERT_NEAR(scores.values[i], unmasked[i], 1e-5);
  mask.values[1] = mask.values[6] = 0;
  ASSERT_EQ(tessera_run(network.get(), both.data(), 2, &out, 1), TESSERA_OK) << tessera_last_error();
  EXPECT_NE(scores.values, unmasked);

  tokens.values[3] = 50;
  EXPECT_EQ(tessera_run(network.get(), &in, 1, &out, 1), TESSERA_BAD_ARGUMENT);
  EXPECT_NE(std::string(tessera_last_error()).find("id out of range: ids[3] is 50; needs 0 to 49"), std::string::npos)
      << tessera_last_error();
}

// A choice that no processor offers is warned about where it is looked up.
TEST(CRun, TakesTheDecisionsOfTheCheckpoint) {
  const TemporaryFolder folder;
  const std::string run = trained(folder.path(), experiment(kDense));
  std::string key, warning;
  const tessera::testing::LogSinkScope sink([&](LogLevel level, std::string_view text) {
    const std::string_view prefix = "decisions: conv2d";
    if (!text.starts_with(prefix)) return;
    if (level == LogLevel::debug) key = text.substr(11, text.rfind(": ") - 11);
    if (level == LogLevel::warning) warning = text;
  });
  Buffer<float> images = some_images(8);
  scores_of(Loaded(run), images);
  ASSERT_FALSE(key.empty()) << "conv2 asks for a choice";
  {
    const RunFolder opened = RunFolder::open(real_vfs(), run);
    const RunLock lock(run);
    CheckpointStore store(real_vfs(), opened.checkpoints());
    store.open_for_writing(lock);
    const Checkpoint newest = store.load_latest();
    Value manifest = newest.manifest;
    Value* const decisions = manifest.find("decisions");
    ASSERT_NE(decisions, nullptr);
    decisions->find("decisions")->set(key, "abacus");
    store.save(newest.step, newest.parts, manifest);
  }
  scores_of(Loaded(run), images);
  EXPECT_TRUE(warning.starts_with("decisions: " + key + " was decided as 'abacus'")) << warning;
}

TEST(CRun, TakesTheThreadsThatItIsTold) {
  const Loaded network(dense_run());
  Buffer<float> images = some_images(3);
  const std::vector<float> one = scores_of(network, images);
  ASSERT_EQ(tessera_set_threads(network.get(), 2), TESSERA_OK);
  const std::vector<float> two = scores_of(network, images);
  for (std::size_t i = 0; i < one.size(); ++i) ASSERT_NEAR(two[i], one[i], 1e-5);
  ASSERT_EQ(tessera_set_threads(network.get(), 1), TESSERA_OK);
  EXPECT_EQ(scores_of(network, images), one);
}

}  // namespace
}  // namespace tessera::capi::testing
