#include "train/generate/sampling.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <vector>

#include "core/support/error.h"
#include "tests/support/message_of.h"

namespace tessera::testing {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// The share of each token over evenly spread draws.
std::map<std::int64_t, double> shares(const std::vector<float>& scores, const SamplingOptions& options) {
  constexpr int kDraws = 10000;
  std::map<std::int64_t, double> result;
  for (int i = 0; i < kDraws; ++i) result[sample_token(scores, options, (i + 0.5) / kDraws)] += 1.0 / kDraws;
  return result;
}

std::vector<float> logs(const std::vector<double>& probabilities) {
  std::vector<float> scores;
  for (const double p : probabilities) scores.push_back(static_cast<float>(std::log(p)));
  return scores;
}

TEST(Sampling, DrawsByTheProbabilities) {
  const auto drawn = shares(logs({0.1, 0.6, 0.3}), {});
  EXPECT_NEAR(drawn.at(0), 0.1, 1e-3);
  EXPECT_NEAR(drawn.at(1), 0.6, 1e-3);
  EXPECT_NEAR(drawn.at(2), 0.3, 1e-3);
}

TEST(Sampling, TemperatureSharpens) {
  const auto drawn = shares(logs({0.2, 0.8}), {.temperature = 0.5});
  EXPECT_NEAR(drawn.at(0), 0.04 / 0.68, 1e-3);
  EXPECT_EQ(sample_token(std::vector<float>{1.0F, 3.0F, 3.0F}, {.temperature = 0}, 0.99), 1) << "the first of equal ones";
}

TEST(Sampling, TopKKeepsTheLikeliest) {
  const auto drawn = shares(logs({0.1, 0.2, 0.3, 0.4}), {.top_k = 2});
  ASSERT_EQ(drawn.size(), 2U);
  EXPECT_NEAR(drawn.at(2), 3.0 / 7, 1e-3);
  EXPECT_NEAR(drawn.at(3), 4.0 / 7, 1e-3);
  EXPECT_EQ(shares(logs({0.1, 0.2, 0.3, 0.4}), {.top_k = 9}).size(), 4U);
  EXPECT_EQ(sample_token(std::vector<float>{2.0F, 2.0F, 2.0F}, {.top_k = 1}, 0.9), 0) << "the first of equal ones";
}

TEST(Sampling, TopPKeepsTheFewestThatSumToIt) {
  const auto drawn = shares(logs({0.1, 0.5, 0.15, 0.25}), {.top_p = 0.7});
  ASSERT_EQ(drawn.size(), 2U) << "0.5 is too little, 0.5 + 0.25 is enough";
  EXPECT_NEAR(drawn.at(1), 2.0 / 3, 1e-3);
  EXPECT_NEAR(drawn.at(3), 1.0 / 3, 1e-3);
  EXPECT_EQ(shares(logs({0.1, 0.5, 0.4}), {.top_p = 1e-9}).size(), 1U) << "one token at least";
  EXPECT_EQ(shares(logs({0.1, 0.5, 0.4}), {.top_k = 2, .top_p = 0.5}).size(), 1U) << "of what top-k has left";
}

TEST(Sampling, TokensWithoutProbabilityAreNeverDrawn) {
  const std::vector<float> scores{-kInfinity, 0.0F, -kInfinity};
  for (const double draw : {0.0, 0.5, std::nextafter(1.0, 0.0)}) EXPECT_EQ(sample_token(scores, {}, draw), 1);
}

TEST(Sampling, RefusesWhatCannotBe) {
  const std::vector<float> scores{0.0F, 1.0F};
  EXPECT_EQ(message_of<ConfigError>([&] { sample_token(scores, {.temperature = -1}, 0.5); }),
            "temperature is -1; must be 0 or more");
  EXPECT_EQ(message_of<ConfigError>([&] { sample_token(scores, {.top_p = 0}, 0.5); }),
            "top-p is 0; must be above 0 and at most 1");
  EXPECT_THROW(sample_token(scores, {.top_k = -1}, 0.5), ConfigError);
  EXPECT_THROW(sample_token(std::vector<float>{0.0F, std::nanf("")}, {}, 0.5), NumericError);
  EXPECT_THROW(sample_token(std::vector<float>{0.0F, kInfinity}, {}, 0.5), NumericError);
  EXPECT_THROW(sample_token(std::vector<float>{-kInfinity}, {}, 0.5), NumericError);
}

}  // namespace
}  // namespace tessera::testing
