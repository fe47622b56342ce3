#include "core/ops/attention_pattern.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/support/error.h"
#include "tests/support/message_of.h"

namespace tessera {
namespace {

AttentionPatternOptions options(std::int64_t positions, std::int64_t band, double density, std::int64_t block = 1,
                                bool causal = true) {
  return {.positions = positions,
          .heads = 3,
          .band = band,
          .density = density,
          .block = block,
          .causal = causal,
          .stream = RngStream(5, "pattern_test", "pattern")};
}

TEST(AttentionPattern, EveryHeadKeepsExactlyTheStatedNumber) {
  for (const auto& [positions, band, density, block, causal] :
       std::vector<std::tuple<std::int64_t, std::int64_t, double, std::int64_t, bool>>{{257, 16, 0.05, 1, true},
                                                                                       {257, 16, 0.05, 1, false},
                                                                                       {100, 1, 0.9, 1, true},
                                                                                       {64, 3, 1, 1, false},
                                                                                       {64, 3, 0, 1, true},
                                                                                       {1000, 40, 0.1, 16, true},
                                                                                       {1000, 40, 0.5, 32, false},
                                                                                       {1, 1, 0.5, 1, true},
                                                                                       {5, 9, 0.5, 1, false}}) {
    const AttentionPattern pattern(options(positions, band, density, block, causal));
    std::int64_t beside = 0;
    for (std::int64_t i = 0; i < pattern.units(); ++i) {
      for (std::int64_t j = 0; j < (causal ? i + 1 : pattern.units()); ++j) {
        beside += i != j && (std::abs(i - j) - 1) * block + 1 >= band;
      }
    }
    EXPECT_EQ(pattern.kept(), std::llround(density * static_cast<double>(beside))) << positions;
    for (std::int64_t head = 0; head < 3; ++head) {
      std::int64_t kept = 0;
      for (std::int64_t i = 0; i < pattern.units(); ++i) {
        const auto keys = pattern.row(head, i);
        kept += static_cast<std::int64_t>(keys.size());
        EXPECT_TRUE(std::ranges::is_sorted(keys, std::ranges::less_equal()) || keys.size() < 2);
        for (const std::int64_t key : keys) {
          EXPECT_GE((std::abs(i - key) - 1) * block + 1, band);
          EXPECT_LT(key, causal ? i : pattern.units());
        }
      }
      EXPECT_EQ(kept, pattern.kept());
    }
  }
}

// A diagonal keeps the share c / distance of its pairs, up to the rounding of the count.
TEST(AttentionPattern, DiagonalsKeepAShareThatFallsWithTheirDistance) {
  const std::int64_t n = 512, band = 8;
  const AttentionPattern pattern(options(n, band, 0.06));
  double sum = 0;
  for (std::int64_t d = band; d < n; ++d) sum += static_cast<double>(n - d) / static_cast<double>(d);
  const double c = static_cast<double>(pattern.kept()) / sum;
  ASSERT_LT(c, band);  // no probability is clipped to 1
  for (std::int64_t head = 0; head < 3; ++head) {
    std::vector<std::int64_t> kept(static_cast<std::size_t>(n), 0);
    for (std::int64_t i = 0; i < n; ++i) {
      for (const std::int64_t key : pattern.row(head, i)) ++kept[static_cast<std::size_t>(i - key)];
    }
    for (std::int64_t d = band; d < n; ++d) {
      EXPECT_NEAR(static_cast<double>(kept[static_cast<std::size_t>(d)]), c * static_cast<double>(n - d) / static_cast<double>(d),
                  1.0001);
    }
  }
}

// All pairs of a diagonal are equally likely, so each half gets about as many.
TEST(AttentionPattern, PairsOfADiagonalAreDrawnUniformly) {
  const std::int64_t n = 400;
  AttentionPatternOptions of = options(n, 10, 0.1);
  of.heads = 40;
  const AttentionPattern pattern(of);
  double early = 0, all = 0;
  for (std::int64_t head = 0; head < of.heads; ++head) {
    for (std::int64_t i = 0; i < n; ++i) {
      for (const std::int64_t key : pattern.row(head, i)) {
        early += 2 * key < n - (i - key);
        ++all;
      }
    }
  }
  EXPECT_NEAR(early / all, 0.5, 5 * 0.5 / std::sqrt(all));
}

TEST(AttentionPattern, SeedsAndHeadsDiffer) {
  AttentionPatternOptions of = options(200, 4, 0.1);
  const AttentionPattern pattern(of), same(of);
  of.stream = RngStream(6, "pattern_test", "pattern");
  const AttentionPattern other(of);
  EXPECT_TRUE(std::ranges::equal(pattern.keys(), same.keys()));
  EXPECT_FALSE(std::ranges::equal(pattern.keys(), other.keys()));
  const auto half = static_cast<std::size_t>(pattern.kept());
  EXPECT_FALSE(std::ranges::equal(pattern.keys().subspan(0, half), pattern.keys().subspan(half, half)));
}

TEST(AttentionPattern, CountsThePairsOfThePositionsThatThereAre) {
  for (const std::int64_t block : {1, 16}) {
    const AttentionPattern pattern(options(150, 5, 0.3, block, false));
    std::int64_t pairs = 0;
    for (std::int64_t head = 0; head < 3; ++head) {
      for (std::int64_t i = 90; i < 101; ++i) {
        for (std::int64_t j = 0; j < 101; ++j) pairs += pattern.sees_beside_band(head, i, j);
      }
    }
    EXPECT_GT(pairs, 0);
    EXPECT_EQ(pattern.count(11, 101), pairs);
  }
}

TEST(AttentionPattern, WhatIsNoPatternIsNamed) {
  const auto message = [](const AttentionPatternOptions& of) { return message_of<ConfigError>([&] { AttentionPattern{of}; }); };
  EXPECT_EQ(message(options(0, 1, 0.5)), "attention pattern: positions are 0, heads 3, band is 1; needs 1 or more of each");
  EXPECT_EQ(message(options(4, 1, 1.5)), "attention pattern: density is 1.5; needs 0 <= density <= 1");
  EXPECT_EQ(message(options(4, 1, 0.5, 8)), "attention pattern: block is 8; needs 1, 16 or 32");
  EXPECT_EQ(message(options(65537, 1, 0)), "attention pattern: positions are 65537 in blocks of 1; needs at most 65536 blocks");
  // 65,536 units have 65,535 * 65,536 / 2 pairs outside a band of 1.
  EXPECT_EQ(
      message(options(65536, 1, 0.5)),
      "attention pattern: each of 3 heads has 65536 rows and keeps 1073725440 pairs beside the band; needs at most 268435456 "
      "of both in all: a lower density, or blocks");
  EXPECT_NO_THROW(AttentionPattern::check(options(65536, 1, 0.04)));
}

}  // namespace
}  // namespace tessera
