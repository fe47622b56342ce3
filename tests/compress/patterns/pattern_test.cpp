// Every pattern against what any set of its kind must be: the best-scored one of the asked size.
#include "compress/patterns/pattern.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "compress/patterns/builtin.h"
#include "core/rng.h"
#include "core/support/error.h"
#include "tests/support/message_of.h"

namespace tessera::testing {
namespace {

Tensor random_scores(const Shape& shape, std::uint64_t seed) {
  Tensor scores = Tensor::empty(shape);
  fill_uniform(scores, RngStream(seed, "test", "scores"), 0, 1);
  return scores;
}

std::int64_t ones(const Tensor& mask) {
  const std::vector<std::uint8_t> bits = mask.to_vector<std::uint8_t>();
  return std::accumulate(bits.begin(), bits.end(), std::int64_t{0});
}

double score_of(const Tensor& scores, const Tensor& mask) {
  double sum = 0;
  for (std::int64_t i = 0; i < scores.numel(); ++i) sum += mask.data<std::uint8_t>()[i] * scores.data<float>()[i];
  return sum;
}

class Patterns : public ::testing::TestWithParam<const Pattern*> {};

TEST_P(Patterns, KeepAsManyAsAsked) {
  for (const Shape& shape : {Shape{7, 5}, Shape{16, 3, 3, 12}, Shape{1, 1}, Shape{3, 1, 1, 2}}) {
    const Tensor scores = random_scores(shape, 1);
    for (const double density : {0.0, 0.1, 0.5, 1.0}) {
      const auto kept = static_cast<std::int64_t>(density * static_cast<double>(scores.numel()));
      const std::vector<Tensor> masks = GetParam()->project(std::vector{scores}, kept);
      ASSERT_EQ(masks.size(), 1u);
      EXPECT_EQ(masks[0].shape(), shape);
      EXPECT_EQ(ones(masks[0]), kept) << shape;
    }
  }
}

TEST_P(Patterns, RefuseWhatCannotBe) {
  const std::vector<Tensor> scores{random_scores({4, 4}, 1)};
  EXPECT_THROW(GetParam()->project(scores, -1), ConfigError);
  EXPECT_THROW(GetParam()->project(scores, 17), ConfigError);
  scores[0].data<float>()[3] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THROW(GetParam()->project(scores, 4), NumericError);
}

TEST_P(Patterns, EqualScoresGiveEqualMasks) {
  const std::vector<Tensor> scores{Tensor::full({6, 6}, 0.5), Tensor::full({3, 4}, 0.5)};
  const std::vector<Tensor> once = GetParam()->project(scores, 20), again = GetParam()->project(scores, 20);
  for (std::size_t i = 0; i < once.size(); ++i) EXPECT_EQ(once[i].to_vector<std::uint8_t>(), again[i].to_vector<std::uint8_t>());
  EXPECT_EQ(ones(once[0]) + ones(once[1]), 20);
}

INSTANTIATE_TEST_SUITE_P(All, Patterns, ::testing::ValuesIn(builtin_patterns().begin(), builtin_patterns().end()),
                         [](const auto& test) { return std::string(test.param->name()); });

// No set of as many elements scores higher than that of a full sort, over several weights together.
TEST(Unstructured, KeepsTheHighestOfAllWeights) {
  const Pattern& pattern = *find_pattern("unstructured");
  const std::vector<Tensor> scores{random_scores({13, 7}, 1), random_scores({5, 3, 3, 2}, 2), random_scores({1, 1}, 3)};
  std::vector<float> all;
  for (const Tensor& each : scores) {
    const std::vector<float> values = each.to_vector<float>();
    all.insert(all.end(), values.begin(), values.end());
  }
  std::ranges::sort(all, std::greater());
  for (const std::int64_t kept : {1, 17, 100, 181}) {
    const std::vector<Tensor> masks = pattern.project(scores, kept);
    double sum = 0;
    std::int64_t count = 0;
    for (std::size_t i = 0; i < masks.size(); ++i) {
      sum += score_of(scores[i], masks[i]);
      count += ones(masks[i]);
    }
    EXPECT_EQ(count, kept);
    EXPECT_NEAR(sum, std::accumulate(all.begin(), all.begin() + kept, 0.0), 1e-4);
  }
}

TEST(Unstructured, OfEqualScoresTheFirstAreKept) {
  const std::vector<Tensor> scores{Tensor::from<float>({1, 2, 1, 1}, {2, 2}), Tensor::from<float>({1, 3}, {1, 2})};
  const std::vector<Tensor> masks = find_pattern("unstructured")->project(scores, 4);
  EXPECT_EQ(masks[0].to_vector<std::uint8_t>(), (std::vector<std::uint8_t>{1, 1, 1, 0}));
  EXPECT_EQ(masks[1].to_vector<std::uint8_t>(), (std::vector<std::uint8_t>{0, 1}));
}

}  // namespace
}  // namespace tessera::testing
