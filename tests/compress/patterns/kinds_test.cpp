// What each pattern keeps.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <numeric>

#include "compress/patterns/builtin.h"
#include "core/support/error.h"
#include "tests/compress/patterns/masks.h"

namespace tessera::testing {
namespace {

// A set of units: bit u is set if unit u is in the set.
using Units = std::uint32_t;

struct Search {
  std::vector<Tensor> scores;
  // The elements of unit `u`: pairs of a weight and an index into it.
  std::vector<std::vector<std::pair<std::size_t, std::int64_t>>> units;

  Masks masks_of(Units set) const {
    Masks masks;
    for (const Tensor& each : scores) masks.push_back(Tensor::zeros(each.shape(), DType::u8));
    for (std::size_t u = 0; u < units.size(); ++u) {
      if ((set >> u & 1U) == 0) continue;
      for (const auto& [weight, i] : units[u]) masks[weight].data<std::uint8_t>()[i] = 1;
    }
    return masks;
  }
  double norm_of(std::size_t u) const {
    double squares = 0;
    for (const auto& [weight, i] : units[u]) squares += std::pow(static_cast<double>(scores[weight].data<float>()[i]), 2);
    return std::sqrt(squares);
  }
  // Of all sets with at most `kept` elements that are `allowed`, the one with the largest sum of unit norms.
  Masks best(std::int64_t kept, const std::function<bool(Units)>& allowed) const {
    Units best = 0;
    double most = -1;
    for (Units set = 0; set < Units{1} << units.size(); ++set) {
      if (!allowed(set) || std::popcount(set) * static_cast<std::int64_t>(units[0].size()) > kept) continue;
      double sum = 0;
      for (std::size_t u = 0; u < units.size(); ++u) sum += (set >> u & 1U) != 0 ? norm_of(u) : 0;
      if (sum > most) most = sum, best = set;
    }
    return masks_of(best);
  }
};

// Compares the set that `pattern` chooses, whose units have one size, with the best of all sets.
void expect_best_set(const PatternConfig& pattern, const Search& search, const std::function<bool(Units)>& allowed) {
  const auto unit = static_cast<std::int64_t>(search.units.front().size());
  for (std::int64_t kept = 2 * unit; kept <= size_of(search.scores); ++kept) {
    const Masks want = search.best(kept, allowed), found = make_pattern(pattern)->project(search.scores, kept);
    for (std::size_t w = 0; w < want.size(); ++w) {
      ASSERT_EQ(found[w].to_vector<std::uint8_t>(), want[w].to_vector<std::uint8_t>()) << kept << " elements, weight " << w;
    }
  }
}

// No set of the same size scores higher than that of a full sort over several weights together.
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
  // Two taps of three inputs. Blocks of 2 x 2 end in blocks of 2 x 1. Norm over size: 1, 1.06, 1, 0.71.
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

// Ten blocks of 2 outputs by 3 inputs, of a linear weight and of the taps of a convolution.
TEST(Block, NoSetOfBlocksScoresHigher) {
  Search search{.scores = random_scores({{4, 6}, {2, 3, 1, 6}}, 3), .units = {}};
  for (std::size_t w = 0; w < 2; ++w) {
    const std::int64_t outputs = search.scores[w].dim(0), positions = search.scores[w].numel() / outputs;
    for (std::int64_t o = 0; o < outputs; o += 2) {
      for (std::int64_t k = 0; k < positions; k += 3) {
        auto& unit = search.units.emplace_back();
        for (std::int64_t i = 0; i < 6; ++i) unit.emplace_back(w, (o + i / 3) * positions + k + i % 3);
      }
    }
  }
  ASSERT_EQ(search.units.size(), 10U);
  expect_best_set({.pattern = "block", .block = Extent{2, 3}}, search, [](Units) { return true; });
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

// Each group is checked against every choice of n elements of m.
TEST(NOfM, NoSetOfEachGroupScoresHigher) {
  for (const auto& [n, m] : {std::pair{1, 4}, {2, 4}, {2, 8}, {3, 4}}) {
    const std::vector<Tensor> scores = random_scores({{5, 8}, {3, 2, 1, 16}}, 11);
    const Masks masks = make_pattern({.pattern = "n_m", .n_m = str(n, ':', m)})->project(scores, size_of(scores) * n / m);
    for (std::size_t w = 0; w < scores.size(); ++w) {
      for (std::int64_t begin = 0; begin < scores[w].numel(); begin += m) {
        const float* const group = scores[w].data<float>() + begin;
        double best = -1, found = 0;
        for (Units set = 0; set < Units{1} << m; ++set) {
          if (std::popcount(set) != n) continue;
          double sum = 0;
          for (std::int64_t i = 0; i < m; ++i) sum += (set >> i & 1U) != 0 ? static_cast<double>(group[i]) : 0;
          best = std::max(best, sum);
        }
        std::int64_t count = 0;
        for (std::int64_t i = 0; i < m; ++i) {
          const std::uint8_t keeps = masks[w].data<std::uint8_t>()[begin + i];
          found += keeps * static_cast<double>(group[i]);
          count += keeps;
        }
        EXPECT_EQ(count, n);
        EXPECT_NEAR(found, best, 1e-12) << n << ':' << m << " of weight " << w << " at " << begin;
      }
    }
  }
}

// Nine outputs of four elements. Each weight keeps at least one.
TEST(Channel, NoSetOfOutputsScoresHigher) {
  Search search{.scores = random_scores({{5, 4}, {4, 1, 2, 2}}, 8), .units = {}};
  for (std::size_t w = 0; w < 2; ++w) {
    for (std::int64_t o = 0; o < search.scores[w].dim(0); ++o) {
      auto& unit = search.units.emplace_back();
      for (std::int64_t i = 0; i < 4; ++i) unit.emplace_back(w, o * 4 + i);
    }
  }
  expect_best_set({.pattern = "channel"}, search, [](Units set) { return (set & 0x1FU) != 0 && (set >> 5) != 0; });
}

TEST(Channel, KeepsTheBestOutputsAndOneOfEachWeight) {
  const std::vector<Tensor> scores{Tensor::from<float>({1, 1, 3, 3, 2, 2}, {3, 2}), Tensor::from<float>({0, 0.1F}, {2, 1})};
  const auto pattern = make_pattern({.pattern = "channel"});
  const Masks masks = pattern->project(scores, 5);
  EXPECT_EQ(masks[0].to_vector<std::uint8_t>(), (Bits{0, 0, 1, 1, 1, 1}));
  EXPECT_EQ(masks[1].to_vector<std::uint8_t>(), (Bits{0, 1})) << "the best, however low";
  EXPECT_EQ(ones(pattern->project(scores, 0)), 3);
}

// Two weights share a budget. The first has lower scores throughout. Each mask is a subset of the one before.
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
