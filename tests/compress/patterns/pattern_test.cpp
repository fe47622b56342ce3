// Compares every pattern with what any set of its kind must be: the best-scored set of the requested size.
#include "compress/patterns/pattern.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <limits>

#include "compress/patterns/builtin.h"
#include "core/support/error.h"
#include "tests/compress/patterns/masks.h"
#include "tests/support/message_of.h"

namespace tessera::testing {
namespace {

// The scores, with `value` where the mask is 0.
std::vector<Tensor> masked(const std::vector<Tensor>& scores, const Masks& masks, float value) {
  std::vector<Tensor> all;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    all.push_back(scores[i].clone());
    for (std::int64_t k = 0; k < scores[i].numel(); ++k) {
      if (masks[i].data<std::uint8_t>()[k] == 0) all[i].data<float>()[k] = value;
    }
  }
  return all;
}

// A mask as a matrix of outputs by positions.
struct Matrix {
  explicit Matrix(const Tensor& mask)
      : outputs(mask.dim(0)), positions(mask.numel() / mask.dim(0)), bits(mask.to_vector<std::uint8_t>()) {}
  bool at(std::int64_t output, std::int64_t position) const {
    return bits[static_cast<std::size_t>(output * positions + position)] != 0;
  }
  bool any(std::int64_t output) const {
    for (std::int64_t k = 0; k < positions; ++k) {
      if (at(output, k)) return true;
    }
    return false;
  }
  Bits row(std::int64_t output) const { return {bits.begin() + output * positions, bits.begin() + (output + 1) * positions}; }
  std::int64_t outputs, positions;
  Bits bits;
};

bool is_anything(const Tensor&) { return true; }

// Whether the mask consists of blocks of 2 outputs by 3 inputs.
bool is_of_blocks(const Tensor& mask) {
  const Matrix matrix(mask);
  const std::int64_t inputs = mask.dim(-1);
  for (std::int64_t o = 0; o < matrix.outputs; ++o) {
    for (std::int64_t k = 0; k < matrix.positions; ++k) {
      const std::int64_t input = k % inputs;
      if (matrix.at(o, k) != matrix.at(o - o % 2, k - input + input - input % 3)) return false;
    }
  }
  return true;
}

bool is_two_of_four(const Tensor& mask) {
  const Bits bits = mask.to_vector<std::uint8_t>();
  for (std::size_t i = 0; i < bits.size(); i += 4) {
    if (bits[i] + bits[i + 1] + bits[i + 2] + bits[i + 3] != 2) return false;
  }
  return true;
}

// Whether the mask consists of tiles: of the outputs that keep anything, three in a row keep the same positions. Outputs of a
// tile without any positions look like pruned ones and are skipped.
bool is_of_tiles(const Tensor& mask) {
  const Matrix matrix(mask);
  std::vector<std::int64_t> left;
  for (std::int64_t o = 0; o < matrix.outputs; ++o) {
    if (matrix.any(o)) left.push_back(o);
  }
  for (std::size_t i = 0; i < left.size(); ++i) {
    for (std::int64_t k = 0; k < matrix.positions; ++k) {
      if (matrix.at(left[i], k) != matrix.at(left[i - i % 3], k)) return false;
    }
  }
  return true;
}

// Counts the tiles: runs of up to three consecutive outputs with the same positions. Empty outputs are left out.
std::int64_t tile_count(const Tensor& mask) {
  const Matrix matrix(mask);
  std::int64_t count = 0, width = 0, last = -1;
  for (std::int64_t o = 0; o < matrix.outputs; ++o) {
    if (!matrix.any(o)) continue;
    const bool same = last >= 0 && width < 3 && matrix.row(o) == matrix.row(last);
    width = same ? width + 1 : 1;
    count += same ? 0 : 1;
    last = o;
  }
  return count;
}

bool is_of_outputs(const Tensor& mask) {
  const Matrix matrix(mask);
  bool some = false;
  for (std::int64_t o = 0; o < matrix.outputs; ++o) {
    some = some || matrix.any(o);
    for (std::int64_t k = 0; k < matrix.positions; ++k) {
      if (matrix.at(o, k) != matrix.at(o, 0)) return false;
    }
  }
  return some;
}

struct Case {
  PatternConfig config;
  bool (*feasible)(const Tensor& mask);
  // Less than one unit is missing from the requested count. More is kept only if one unit is the minimum.
  std::int64_t (*unit)(const Shape& weight);
};

std::int64_t one(const Shape&) { return 1; }
std::int64_t block(const Shape&) { return 6; }
std::int64_t tile(const Shape&) { return 3; }
std::int64_t output(const Shape& weight) { return weight.numel() / weight[0]; }

const std::vector<Case>& cases() {
  static const std::vector<Case> all{
      {{.pattern = "unstructured"}, &is_anything, &one},
      {{.pattern = "block", .block = Extent{2, 3}}, &is_of_blocks, &block},
      {{.pattern = "n_m", .n_m = "2:4"}, &is_two_of_four, nullptr},
      {{.pattern = "tile", .group = 3}, &is_of_tiles, &tile},
      {{.pattern = "tile_element", .group = 3, .extra = 0.1}, &is_anything, &one},
      {{.pattern = "channel"}, &is_of_outputs, &output},
  };
  return all;
}

const std::vector<Shape> kShapes{{7, 5}, {16, 3, 3, 12}, {1, 1}, {3, 1, 1, 2}, {1, 9}, {11, 1}, {8, 8}, {5, 2, 3, 7}};

class Patterns : public ::testing::TestWithParam<Case> {
 protected:
  Masks project(const std::vector<Tensor>& scores, std::int64_t kept) const { return pattern_->project(scores, kept); }
  std::int64_t unit(const Shape& shape) const { return GetParam().unit(shape); }
  bool fixed() const { return GetParam().unit == nullptr; }
  std::vector<Shape> shapes() const {
    std::vector<Shape> fit;
    std::ranges::copy_if(kShapes, std::back_inserter(fit), [&](const Shape& shape) { return pattern_->why_not(shape).empty(); });
    return fit;
  }
  std::unique_ptr<const Pattern> pattern_ = make_pattern(GetParam().config);
};

TEST(PatternList, EveryPatternIsInTheTable) {
  std::vector<std::string_view> tested;
  for (const Case& each : cases()) tested.push_back(each.config.pattern);
  EXPECT_EQ(tested, pattern_names());
  EXPECT_THROW(make_pattern({.pattern = "tiles"}), ConfigError);
  for (const Case& each : cases()) EXPECT_EQ(make_pattern(each.config)->name(), each.config.pattern);
}

TEST_P(Patterns, KeepAsManyAsAskedInSetsOfTheirKind) {
  ASSERT_GE(shapes().size(), 2u);
  for (const Shape& shape : shapes()) {
    const std::vector<Tensor> scores{random_scores(shape, 1)};
    const std::int64_t total = shape.numel();
    for (const double density : {0.0, 0.02, 0.1, 0.5, 0.9, 1.0}) {
      SCOPED_TRACE(str(shape, " at ", density));
      const std::int64_t kept = fixed() ? total / 2 : share(density, total);
      const Masks masks = project(scores, share(density, total));
      ASSERT_EQ(masks.size(), 1u);
      EXPECT_EQ(masks[0].shape(), shape);
      EXPECT_EQ(masks[0].dtype(), DType::u8);
      EXPECT_TRUE(GetParam().feasible(masks[0]));
      const std::int64_t least = fixed() ? 1 : unit(shape);
      EXPECT_GT(ones(masks), kept - least);
      EXPECT_LE(ones(masks), std::max(kept, least));
    }
  }
}

TEST_P(Patterns, KeepTogetherWhatSeveralWeightsAreAsked) {
  const std::vector<Tensor> scores = random_scores(shapes(), 3);
  const std::int64_t total = size_of(scores);
  for (const double density : {0.3, 0.5, 0.8}) {
    const std::int64_t kept = share(density, total);
    const Masks masks = project(scores, kept);
    std::int64_t most = 1;
    for (std::size_t i = 0; i < scores.size(); ++i) {
      EXPECT_TRUE(GetParam().feasible(masks[i])) << scores[i].shape();
      if (!fixed()) most = std::max(most, unit(scores[i].shape()));
    }
    EXPECT_LE(ones(masks), fixed() ? total / 2 : kept);
    EXPECT_GT(ones(masks), (fixed() ? total / 2 : kept) - most);
  }
}

TEST_P(Patterns, ASetOfTheirKindStaysAsItIs) {
  std::vector<std::vector<Tensor>> all{random_scores(shapes(), 5)};
  for (const Shape& shape : shapes()) all.push_back({random_scores(shape, 7)});
  for (const std::vector<Tensor>& scores : all) {
    for (const double density : {0.02, 0.1, 0.25, 0.5, 0.75, 0.97, 1.0}) {
      SCOPED_TRACE(str(scores.size(), ' ', scores[0].shape(), " at ", density));
      const std::int64_t kept = share(density, size_of(scores));
      const Masks once = project(scores, kept), again = project(masked(scores, once, -1), kept);
      for (std::size_t i = 0; i < once.size(); ++i) {
        EXPECT_EQ(again[i].to_vector<std::uint8_t>(), once[i].to_vector<std::uint8_t>());
      }
      if (GetParam().config.pattern == "tile_element") continue;  // its tiles count zeros between single elements
      const std::vector<Tensor> zeroed = masked(scores, once, 0);
      EXPECT_NEAR(score_of(zeroed, project(zeroed, kept)), score_of(zeroed, once), 1e-9) << "nothing that is not zero goes";
    }
  }
}

// As in gradual pruning: removed elements do not come back, and the requested count is still met.
TEST_P(Patterns, SetsOfFallingSizeLieInEachOther) {
  const std::vector<Shape> fit = shapes();
  const std::vector<Tensor> scores = random_scores(fit, 9);
  std::vector<Tensor> present = scores;
  Masks before;
  std::int64_t most = 1;
  for (const Shape& shape : fit) most = std::max(most, fixed() ? 1 : unit(shape));
  for (const double density : {0.95, 0.8, 0.6, 0.45, 0.3, 0.2, 0.12}) {
    SCOPED_TRACE(density);
    const std::int64_t kept = fixed() ? size_of(scores) / 2 : share(density, size_of(scores));
    const Masks masks = project(present, kept);
    for (std::size_t i = 0; i < before.size(); ++i) {
      for (std::int64_t k = 0; k < before[i].numel(); ++k) {
        ASSERT_LE(masks[i].data<std::uint8_t>()[k], before[i].data<std::uint8_t>()[k]) << fit[i];
      }
    }
    for (const Tensor& mask : masks) {
      if (GetParam().config.pattern != "tile") break;
      EXPECT_LE(tile_count(mask), (mask.dim(0) + 2) / 3) << mask.shape() << ": tiles stay full matrices";
    }
    EXPECT_LE(ones(masks), kept);
    EXPECT_GT(ones(masks), kept - most);
    present = masked(scores, masks, -1);
    before = masks;
  }
}

TEST_P(Patterns, RefuseWhatCannotBe) {
  const std::vector<Tensor> scores{random_scores({8, 8}, 1)};
  EXPECT_THROW(project(scores, -1), ConfigError);
  EXPECT_THROW(project(scores, 65), ConfigError);
  scores[0].data<float>()[3] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THROW(project(scores, 4), NumericError);
  for (const Shape& shape : kShapes) {
    const std::string why = pattern_->why_not(shape);
    if (why.empty()) continue;
    const std::string message = message_of<ConfigError>([&] { project({random_scores(shape, 1)}, 1); });
    EXPECT_NE(message.find(why), std::string::npos) << message;
  }
}

TEST_P(Patterns, EqualScoresGiveEqualMasksOfTheAskedSize) {
  const std::vector<Tensor> scores{Tensor::full({6, 8}, 0.5), Tensor::full({3, 4}, 0.5)};
  const Masks once = project(scores, 30), again = project(scores, 30);
  for (std::size_t i = 0; i < once.size(); ++i) EXPECT_EQ(once[i].to_vector<std::uint8_t>(), again[i].to_vector<std::uint8_t>());
  EXPECT_LE(ones(once), 30);
  EXPECT_GT(ones(once), 30 - (fixed() ? 1 : unit({6, 8})));
}

TEST_P(Patterns, ScoresOfZeroAreScores) {
  const std::vector<Tensor> scores{Tensor::zeros({8, 12})};
  EXPECT_EQ(ones(project(scores, 48)), 48);
  EXPECT_EQ(ones(project(scores, 96)), fixed() ? 48 : 96);
}

TEST_P(Patterns, WhatIsGoneIsNotKept) {
  const std::vector<Tensor> scores{Tensor::full({8, 8}, -1)};
  EXPECT_EQ(ones(project(scores, 32)), 0);
}

INSTANTIATE_TEST_SUITE_P(All, Patterns, ::testing::ValuesIn(cases()),
                         [](const auto& test) { return std::string(test.param.config.pattern); });

}  // namespace
}  // namespace tessera::testing
