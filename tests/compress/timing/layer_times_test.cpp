#include "compress/timing/layer_times.h"

#include <gtest/gtest.h>

#include "core/cpu/machine_memory.h"
#include "layers/activation.h"
#include "layers/conv2d.h"
#include "layers/embedding.h"
#include "layers/linear.h"
#include "layers/self_attention.h"
#include "layers/sequential.h"
#include "layers/tucker2_conv2d.h"
#include "tests/compress/timing/busy.h"
#include "tests/support/peak_growth.h"
#include "tests/support/scopes.h"

namespace tessera::testing {
namespace {

constexpr std::int64_t kRounds = 7;

TEST(LayerTimes, WarnOnceWhereOtherProgramsHadTheCores) {
  double waited = 0;
  const HostClock clock([] { return 0.0; }, [&] { return waited += 1; });
  std::string warnings;
  const LogSinkScope sink([&](LogLevel, std::string_view message) { warnings += message; });
  std::unique_ptr<Module> root = std::make_unique<Sequential>();
  root->add_child("a", std::make_unique<Busy>("dense", kSlow));
  time_layers(root, {}, {3, 4}, {.sampling = Sampling::told_in(kRounds)});
  EXPECT_TRUE(warnings.starts_with("timing the layers: threads waited for a core in 14 of 14 rounds")) << warnings;
  EXPECT_EQ(warnings.find("timing", 1), std::string::npos) << warnings;
}

TEST(LayerTimes, CompressedLayersStandBesideWhatTheyReplaceAndTheNetworkComesLast) {
  const PlannedClock clock;
  std::unique_ptr<Module> root = std::make_unique<Sequential>();
  root->add_child("a", std::make_unique<Busy>("dense", kSlow));
  root->add_child("b", std::make_unique<Busy>("factored", kQuick));
  std::vector<Replaced> replaced;
  replaced.push_back({"b", std::make_unique<Busy>("dense", 4 * kSlow)});
  const Module* const factored = &root->child("b");
  const Module* const dense = replaced[0].dense.get();

  const std::vector<LayerTiming> rows = time_layers(root, replaced, {3, 4}, {.sampling = Sampling::told_in(kRounds)});

  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0].path, "a");
  EXPECT_EQ(rows[0].dense.kind, "dense");
  EXPECT_FALSE(rows[0].compressed);
  EXPECT_NEAR(rows[0].dense.ms.p10, 0.6, 1e-9);
  EXPECT_EQ(rows[1].path, "b");
  ASSERT_TRUE(rows[1].compressed);
  EXPECT_EQ(rows[1].dense.kind, "dense");
  EXPECT_EQ(rows[1].compressed->kind, "factored");
  EXPECT_NEAR(rows[1].dense.ms.median, 2.4, 1e-9);
  EXPECT_NEAR(rows[1].speedup.median, 120, 1e-6);
  EXPECT_EQ(rows[2].path, "");
  ASSERT_TRUE(rows[2].compressed);
  EXPECT_NEAR(rows[2].dense.ms.median, 3.0, 1e-9) << "with the dense layer in its place";
  EXPECT_NEAR(rows[2].compressed->ms.p10, 0.62, 1e-9);
  EXPECT_NEAR(rows[2].speedup.median, 3.0 / 0.62, 1e-6);
  EXPECT_EQ(rows[2].network_share, 1);
  EXPECT_DOUBLE_EQ(rows[1].network_share, rows[1].dense.ms.median / rows[2].dense.ms.median);

  EXPECT_EQ(&root->child("b"), factored);
  EXPECT_EQ(replaced[0].dense.get(), dense);
}

TEST(LayerTimes, OfADenseNetworkThereIsOneSide) {
  std::unique_ptr<Module> root = std::make_unique<Sequential>();
  root->add_child("a", std::make_unique<Busy>("dense", kQuick));
  Busy::calls = 0;
  const std::vector<LayerTiming> rows = time_layers(root, {}, {3, 4}, {.sampling = Sampling::told_in(kRounds)});
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_FALSE(rows[0].compressed || rows[1].compressed);
  constexpr int kWarmUpAndCount = 5 + 2;
  EXPECT_EQ(Busy::calls, 2 * kRounds + 5 + kWarmUpAndCount);
}

// Two convolutions of 9 x 4 x 4 multiply-adds a pixel, and a ReLU, which has none.
std::unique_ptr<Module> two_convolutions() {
  std::unique_ptr<Module> root = std::make_unique<Sequential>();
  root->add_child("conv1", std::make_unique<Conv2d>(Conv2dConfig{.in = 4, .out = 4, .padding = {1, 1}, .bias = false}));
  root->add_child("relu", std::make_unique<Relu>());
  root->add_child("conv2", std::make_unique<Conv2d>(Conv2dConfig{.in = 4, .out = 4, .padding = {1, 1}, .bias = false}));
  initialize(*root, 1);
  return root;
}

TEST(LayerTimes, WorkIsThatOfTheBatchAndInTrainingOfTheGradientsThatAreAsked) {
  constexpr std::int64_t kBatch = 3;
  constexpr std::int64_t kMacs = 5 * 7 * 9 * 4 * 4;
  const Shape input{kBatch, 5, 7, 4};
  std::unique_ptr<Module> root = two_convolutions();
  const std::vector<LayerTiming> forward = time_layers(root, {}, input, {.sampling = Sampling::told_in(kRounds)});
  EXPECT_EQ(forward[0].dense.macs, kMacs);
  EXPECT_EQ(forward[0].dense.flops, 2 * kBatch * kMacs);
  EXPECT_EQ(forward[1].dense.flops, 0);
  EXPECT_EQ(forward[3].dense.macs, 2 * kMacs);
  EXPECT_EQ(forward[3].dense.flops, 4 * kBatch * kMacs);
  const std::vector<LayerTiming> training =
      time_layers(root, {}, input, {.phase = Phase::training, .sampling = Sampling::told_in(kRounds)});
  EXPECT_EQ(training[0].dense.flops, 2 * 2 * kBatch * kMacs) << "nobody asks for the gradient of the images";
  EXPECT_EQ(training[2].dense.flops, 3 * 2 * kBatch * kMacs);
  for (const NamedParameter& parameter : named_parameters(*root)) EXPECT_FALSE(parameter.parameter->grad().defined());
}

// A query of width 4 attends to up to 5 positions, with two products.
TEST(LayerTimes, InDecodeTheWorkIsThatOfTheLastPosition) {
  std::unique_ptr<Module> root = std::make_unique<Sequential>();
  root->add_child("tokens", std::make_unique<Embedding>(EmbeddingConfig{.vocabulary = 7, .width = 12}));
  root->add_child("attention", std::make_unique<SelfAttention>(SelfAttentionConfig{.heads = 1, .causal = true}));
  root->add_child("out", std::make_unique<Linear>(LinearConfig{.in = 4, .out = 6}));
  initialize(*root, 1);
  for (const std::int64_t length : {1, 5}) {
    const std::vector<LayerTiming> rows =
        time_layers(root, {}, {3, length}, {.phase = Phase::decode, .sampling = Sampling::told_in(kRounds)});
    ASSERT_EQ(rows.size(), 4u);
    EXPECT_EQ(rows[1].dense.macs, 2 * length * 4);
    EXPECT_EQ(rows[2].dense.macs, 4 * 6);
    EXPECT_EQ(rows[2].dense.flops, 2 * 3 * 4 * 6);
    EXPECT_EQ(rows[3].dense.macs, 2 * length * 4 + 4 * 6);
  }
}

// A token table larger than any cache. Sweeping the caches takes more memory than they hold.
TEST(LayerTimes, LayersOfALargeNetworkAreTimedFromMemoryInDecode) {
  constexpr std::size_t kMiB = std::size_t{1} << 20;
  const auto rows = static_cast<std::int64_t>(std::max(cpu::last_cache(), 8 * kMiB) / sizeof(float));
  std::unique_ptr<Module> root = std::make_unique<Sequential>();
  root->add_child("tokens", std::make_unique<Embedding>(EmbeddingConfig{.vocabulary = rows / 4 + 1, .width = 4}));
  const auto grown = [&](Phase phase) {
    return peak_growth([&] { time_layers(root, {}, {1, 2}, {.phase = phase, .sampling = Sampling::told_in(1)}); });
  };
  const std::optional<std::size_t> inference = grown(Phase::inference);
  if (!inference) GTEST_SKIP() << "the system does not start its count of the most memory again";
  EXPECT_LT(*inference, 4 * kMiB);
  EXPECT_GT(*grown(Phase::decode), 8 * kMiB);
}

// The copies take another time than the originals, as folded layers do.
TEST(LayerTimes, InferenceIsTimedOnFoldedCopiesAndTrainingIsNot) {
  const PlannedClock clock;
  std::unique_ptr<Module> root = std::make_unique<Sequential>();
  root->add_child("a", std::make_unique<Busy>("factored", kQuick));
  std::vector<Replaced> replaced;
  replaced.push_back({"a", std::make_unique<Busy>("dense", kQuick)});
  TimingOptions options{.sampling = Sampling::told_in(kRounds), .folded = [](const Module& module) -> std::unique_ptr<Module> {
                          const Module& layer = module.children().empty() ? module : module.child("a");
                          return std::make_unique<Busy>("copy", layer.kind() == "dense" ? 4 * kSlow : kSlow);
                        }};
  for (const LayerTiming& row : time_layers(root, replaced, {3, 4}, options)) {
    EXPECT_NEAR(row.dense.ms.p10, 2.4, 1e-9) << row.path;
    EXPECT_NEAR(row.compressed->ms.p10, 0.6, 1e-9) << row.path;
    EXPECT_NEAR(row.speedup.median, 4, 1e-6) << row.path;
  }
  EXPECT_EQ(root->child("a").kind(), "factored");
  options.folded = [](const Module&) -> std::unique_ptr<Module> { throw InternalError("training is timed as it is"); };
  options.phase = Phase::training;
  EXPECT_NO_THROW(time_layers(root, replaced, {3, 4}, options));
}

TEST(LayerTimes, TwinsAreTheConvolutionsOfFactoredLayers) {
  std::unique_ptr<Module> root = two_convolutions();
  const auto& dense = dynamic_cast<const Conv2d&>(root->child("conv2"));
  root->replace_child("conv2", Tucker2Conv2d::from_dense(dense, {.out = 2, .in = 3}));
  const std::vector<Replaced> twins = dense_twins(*root);
  ASSERT_EQ(twins.size(), 1u);
  EXPECT_EQ(twins[0].path, "conv2");
  EXPECT_EQ(twins[0].dense->kind(), "conv2d");
}

}  // namespace
}  // namespace tessera::testing
