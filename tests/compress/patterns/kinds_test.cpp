// What single patterns keep.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "compress/patterns/builtin.h"
#include "core/support/error.h"
#include "tests/compress/patterns/masks.h"

namespace tessera::testing {
namespace {

// No set of as many elements scores higher than that of a full sort, over several weights together.
TEST(Unstructured, KeepsTheHighestOfAllWeights) {
  const std::unique_ptr<const Pattern> pattern = make_pattern({});
  const std::vector<Tensor> scores = random_scores({{13, 7}, {5, 3, 3, 2}, {1, 1}}, 1);
  std::vector<float> all;
  for (const Tensor& each : scores) {
    const std::vector<float> values = each.to_vector<float>();
    all.insert(all.end(), values.begin(), values.end());
  }
  std::ranges::sort(all, std::greater());
  for (const std::int64_t kept : {1, 17, 100, 181}) {
    const Masks masks = pattern->project(scores, kept);
    EXPECT_EQ(ones(masks), kept);
    EXPECT_NEAR(score_of(scores, masks), std::accumulate(all.begin(), all.begin() + kept, 0.0), 1e-4);
  }
}

TEST(Unstructured, OfEqualScoresTheFirstAreKept) {
  const std::vector<Tensor> scores{Tensor::from<float>({1, 2, 1, 1}, {2, 2}), Tensor::from<float>({1, 3}, {1, 2})};
  const Masks masks = make_pattern({})->project(scores, 4);
  EXPECT_EQ(masks[0].to_vector<std::uint8_t>(), (Bits{1, 1, 1, 0}));
  EXPECT_EQ(masks[1].to_vector<std::uint8_t>(), (Bits{0, 1}));
}

TEST(Block, KeepsTheBestOfATapAndSmallerOnesAtTheEnds) {
  // Two taps of three inputs; blocks of 2 x 2 end in blocks of 2 x 1. Norm over size: 1, 1.06, 1, 0.71.
  const std::vector<Tensor> scores{Tensor::from<float>({2, 2, 1.5, 2, 2, 1,  //
                                                        2, 2, 1.5, 2, 2, 1},
                                                       {2, 1, 2, 3})};
  const std::unique_ptr<const Pattern> pattern = make_pattern({.pattern = "block", .block = Extent{2, 2}});
  const auto rows = [&](std::int64_t kept) { return pattern->project(scores, kept)[0].to_vector<std::uint8_t>(); };
  EXPECT_EQ(rows(2), (Bits{0, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0}));
  EXPECT_EQ(rows(9), (Bits{1, 1, 1, 0, 0, 0, 1, 1, 1, 0, 0, 0})) << "the first of equal ones, and no more than asked";
  EXPECT_EQ(rows(10), (Bits{1, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1, 0}));
  EXPECT_EQ(rows(1), rows(2)) << "one at least";
  EXPECT_EQ(ones(pattern->project(scores, 0)), 0);
  EXPECT_EQ(pattern->why_not({1, 2, 2, 3}), "has 1 outputs; a block takes 2");
  EXPECT_EQ(pattern->why_not({4, 2, 2, 1}), "has 1 inputs; a block takes 2");
}

TEST(NOfM, KeepsTheLargestOfEachGroupOfInputs) {
  const std::vector<Tensor> scores{Tensor::from<float>({1, 4, 3, 2, 5, 5, 5, 5}, {1, 1, 2, 4})};
  const auto kept = [&](const char* n_m) {
    return make_pattern({.pattern = "n_m", .n_m = n_m})->project(scores, 4)[0].to_vector<std::uint8_t>();
  };
  EXPECT_EQ(kept("2:4"), (Bits{0, 1, 1, 0, 1, 1, 0, 0}));
  EXPECT_EQ(kept("1:4"), (Bits{0, 1, 0, 0, 1, 0, 0, 0}));
  EXPECT_EQ(kept("1:2"), (Bits{0, 1, 1, 0, 1, 0, 1, 0}));
  const auto pattern = make_pattern({.pattern = "n_m", .n_m = "2:8"});
  EXPECT_EQ(pattern->why_not({1, 1, 2, 4}), "has 4 inputs, which 8 does not divide") << "groups lie in one tap";
  for (const char* wrong : {"2", "4:4", "4:2", "0:4", "-1:4", "a:4", "2:4x", "2:", ":4", ""}) {
    EXPECT_THROW(make_pattern({.pattern = "n_m", .n_m = wrong}), ConfigError) << wrong;
  }
}

TEST(Channel, KeepsTheBestOutputsAndOneOfEachWeight) {
  const std::vector<Tensor> scores{Tensor::from<float>({1, 1, 3, 3, 2, 2}, {3, 2}), Tensor::from<float>({0, 0.1F}, {2, 1})};
  const auto pattern = make_pattern({.pattern = "channel"});
  const Masks masks = pattern->project(scores, 5);
  EXPECT_EQ(masks[0].to_vector<std::uint8_t>(), (Bits{0, 0, 1, 1, 1, 1}));
  EXPECT_EQ(masks[1].to_vector<std::uint8_t>(), (Bits{0, 1})) << "the best, however low";
  EXPECT_EQ(ones(pattern->project(scores, 0)), 3);
}

// A budget of two weights, of which the wide one has the lower scores throughout; also in masks that follow each other.
TEST(Channel, LeavesEachWeightATenthOfTheShareThatIsAsked) {
  std::vector<Tensor> scores{random_scores({64, 3, 3, 16}, 1), random_scores({64, 3, 3, 16}, 2)};
  for (std::int64_t i = 0; i < scores[0].numel(); ++i) scores[0].data<float>()[i] *= 0.001F;
  const auto pattern = make_pattern({.pattern = "channel"});
  const std::int64_t output = 3 * 3 * 16;
  for (const auto& [kept, least] : {std::pair{0.5, 3}, {0.34375, 2}, {0.1015625, 1}}) {
    const Masks masks = pattern->project(scores, share(kept, 128 * output));
    EXPECT_EQ(ones(masks[0]), least * output) << kept;
    EXPECT_EQ(ones(masks), share(kept, 128) * output) << kept;
    for (std::size_t w = 0; w < 2; ++w) {
      for (std::int64_t i = 0; i < scores[w].numel(); ++i) {
        if (masks[w].data<std::uint8_t>()[i] == 0) scores[w].data<float>()[i] = -1;
      }
    }
  }
}

}  // namespace
}  // namespace tessera::testing
