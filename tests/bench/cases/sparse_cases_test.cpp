#include "bench/cases/sparse_cases.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/support/error.h"
#include "tests/support/message_of.h"

namespace tessera::bench {
namespace {

constexpr TurnOptions kOnce{.rounds = 1, .seconds = 0};
constexpr double kPeak = 100;

const PatternConfig kAny{.pattern = "unstructured"};

TEST(SparseCases, RowsAreNamedByPatternAndShape) {
  EXPECT_EQ(row_of({kAny, .1, LinearShape{5, 7, 3}}), "unstructured of 5x7 -> 3");
  EXPECT_EQ(row_of({kAny, .1, LinearShape{5, 7, 3}, Magnitudes::trained}), "unstructured, trained rows of 5x7 -> 3");
  EXPECT_EQ(row_of({kAny, .1, LinearShape{5, 7, 3}, Magnitudes::independent, DType::bf16}), "unstructured of 5x7 -> 3, bf16");
  EXPECT_EQ(row_of({{.pattern = "block"}, .1, LinearShape{5, 32, 16}}), "block 16x16 of 5x32 -> 16");
  EXPECT_EQ(row_of({{.pattern = "tile", .group = 8}, .1, ConvShape{1, 8, 8, 5, 3}}), "tile 8 of 1x5x5x8 -> 8, 3x3");
}

TEST(SparseCases, TargetsAreRowsOfDifferentNames) {
  std::vector<std::string> names;
  for (const SparseTarget& target : sparse_targets()) {
    names.push_back(str(row_of(target.of), ' ', target.of.density));
    EXPECT_TRUE(target.training == 0 || target.trains()) << names.back();
    EXPECT_TRUE(target.sums_share == 0 || target.trains()) << names.back();
  }
  std::ranges::sort(names);
  EXPECT_EQ(std::ranges::adjacent_find(names), names.end());
}

TEST(SparseCases, ATrainedLayersRowsAreMoreUneven) {
  const LinearShape shape{3, 251, 257};
  const auto spread_of = [&](Magnitudes magnitudes) {
    const SparseCase of{kAny, .1, shape, magnitudes};
    const Value row = describe_sparse(of, sparse_pair(of), Phase::inference);
    EXPECT_NEAR(row.at("density").as_double(), .1, 1e-4);
    EXPECT_NEAR(row.at("row_kept").at("median").as_double(), 25, 8);
    return row.at("row_kept").at("p90").as_double() - row.at("row_kept").at("p10").as_double();
  };
  // 251 independent trials at 0.1 have a spread of 2.6 * sqrt(22.6) = 12 elements.
  EXPECT_NEAR(spread_of(Magnitudes::independent), 12, 3);
  EXPECT_GT(spread_of(Magnitudes::trained), 20);
}

TEST(SparseCases, AWeightThatIsGivenReplacesTheDrawnOne) {
  std::vector<SparseTarget> targets{{.of = {kAny, .5, LinearShape{5, 4, 4}, Magnitudes::trained}},
                                    {.of = {kAny, .5, LinearShape{5, 4, 4}}}};
  const Tensor weight = Tensor::from(std::vector<float>{1, -9, 2, 8, 7, 3}, {2, 3});
  take_weight(targets, weight);
  EXPECT_EQ(row_of(targets[0].of), "unstructured, trained rows of 5x3 -> 2");
  EXPECT_EQ(row_of(targets[1].of), "unstructured of 5x4 -> 4");
  const LayerPair pair = sparse_pair(targets[0].of);
  EXPECT_EQ(pair.dense->parameter("weight").value().to_vector<float>(), (std::vector<float>{0, -9, 0, 8, 7, 0}));
  EXPECT_EQ(message_of<ConfigError>([&] {
              take_weight(targets, Tensor::zeros({2, 1, 1, 3}));
            }),
            "sparse_bench: the weight is [2, 1, 1, 3] of f32; needs a linear layer's, [out, in] of f32");
}

TEST(SparseCases, TrainingTellsTheShareOfEachPass) {
  for (const SparseCase& of : {SparseCase{kAny, .25, LinearShape{33, 24, 40}},
                               SparseCase{{.pattern = "tile", .group = 8}, .5, ConvShape{2, 16, 16, 9, 3}},
                               SparseCase{kAny, .25, LinearShape{33, 24, 40}, Magnitudes::independent, DType::bf16}}) {
    SCOPED_TRACE(row_of(of));
    const SparseTarget target{.of = of, .training = 1.5, .share = .3, .product_share = .45, .sums_share = .28};
    const LayerPair pair = sparse_pair(of);
    const Value row = measure_sparse(target, pair, Phase::training, kOnce, kPeak);
    EXPECT_EQ(row.at("phase").as_string(), "training");
    EXPECT_EQ(row.at("precision").as_string(), name_of(of.compute));
    EXPECT_EQ(row.at("target").as_double(), 1.5);
    EXPECT_EQ(row.find("share_target"), nullptr);
    EXPECT_DOUBLE_EQ(row.at("peak_share").as_double(), row.at("factored").at("gflops").as_double() / kPeak);
    const Value::List& passes = row.at("parts").as_list();
    ASSERT_EQ(passes.size(), 3u);
    double flops = 0;
    for (const Value& pass : passes) {
      const bool sums = pass.at("name").as_string() == "gradient of values";
      EXPECT_EQ(pass.at("share_target").as_double(), sums ? .28 : .45);
      EXPECT_DOUBLE_EQ(pass.at("peak_share").as_double(), pass.at("gflops").as_double() / kPeak);
      flops += pass.at("gflops").as_double() * pass.at("ms").at("median").as_double();
    }
    const double of_step = row.at("factored").at("gflops").as_double() * row.at("factored").at("ms").at("median").as_double();
    EXPECT_NEAR(flops, of_step, 1e-9 * of_step);
  }
}

TEST(SparseCases, ALayerStandsBesideADenseOneOfAsManyMultiplyAdds) {
  const LayerPair pair = sparse_pair({kAny, .25, LinearShape{33, 24, 40}});
  EXPECT_EQ(pair.beside(Phase::inference).flops, 2.0 * 33 * 6 * 40);
  EXPECT_EQ(pair.beside(Phase::training).flops, 3 * 2.0 * 33 * 6 * 40);
  const Value row = measure_sparse({.of = {kAny, .25, LinearShape{33, 24, 40}}}, pair, Phase::inference, kOnce, kPeak);
  const Value& floor = row.at("library_floor");
  EXPECT_TRUE(floor.at("name").as_string().starts_with("dense 33x6 -> 40, ")) << floor.at("name").as_string();
  EXPECT_GT(floor.at("ms").at("median").as_double(), 0);
  const LayerPair conv = sparse_pair({{.pattern = "tile", .group = 8}, .5, ConvShape{2, 16, 16, 9, 3}});
  const Part narrower = conv.beside(Phase::inference);
  EXPECT_TRUE(narrower.side.name.starts_with("dense 2x9x9x8 -> 16, 3x3, ")) << narrower.side.name;
  EXPECT_EQ(narrower.flops, (ConvShape{2, 8, 16, 9, 3}.flops()));
  EXPECT_FALSE(sparse_pair({kAny, .25, LinearShape{33, 24, 40}, Magnitudes::independent, DType::bf16}).beside);
}

TEST(SparseCases, InferenceHasNoPasses) {
  const SparseTarget target{.of = {kAny, .25, LinearShape{33, 24, 40}}, .forward = 2, .share = .3};
  EXPECT_FALSE(target.trains());
  const Value row = measure_sparse(target, sparse_pair(target.of), Phase::inference, kOnce, kPeak);
  EXPECT_EQ(row.at("weights").as_string(), "constant");
  EXPECT_EQ(row.at("target").as_double(), 2);
  EXPECT_EQ(row.at("share_target").as_double(), .3);
  EXPECT_TRUE(row.at("parts").as_list().empty());
}

}  // namespace
}  // namespace tessera::bench
