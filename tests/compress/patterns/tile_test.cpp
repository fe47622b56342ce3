// Sets of tiles against their definition.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "compress/patterns/builtin.h"
#include "core/support/error.h"
#include "tests/compress/patterns/masks.h"

namespace tessera::testing {
namespace {

// The definition of a set of tiles, written without regard to speed: outputs one by one, then columns of tiles one by one.
class NaiveTiles {
 public:
  NaiveTiles(const std::vector<Tensor>& scores, std::int64_t kept, std::int64_t group) : scores_(scores), group_(group) {
    for (const Tensor& each : scores) masks_.push_back(Tensor::zeros(each.shape(), DType::u8));
    choose_outputs(kept);
    keep(kept);
  }
  const Masks& masks() const { return masks_; }

 private:
  double score(std::size_t w, std::int64_t output, std::int64_t position) const {
    return scores_[w].data<float>()[output * positions(w) + position];
  }
  std::int64_t positions(std::size_t w) const { return scores_[w].numel() / scores_[w].dim(0); }
  void choose_outputs(std::int64_t kept) {
    const double sparsity = 1 - static_cast<double>(kept) / static_cast<double>(size_of(scores_));
    double needed = std::sqrt(1 - sparsity) * static_cast<double>(size_of(scores_));
    std::set<std::pair<std::size_t, std::int64_t>> chosen;
    while (needed > 1e-6) {
      std::pair<std::size_t, std::int64_t> best;
      double highest = -1;
      for (std::size_t w = 0; w < scores_.size(); ++w) {
        for (std::int64_t o = 0; o < scores_[w].dim(0); ++o) {
          double squares = 0;
          for (std::int64_t k = 0; k < positions(w); ++k) squares += score(w, o, k) * score(w, o, k);
          const double norm = std::sqrt(squares) / static_cast<double>(positions(w));
          if (norm <= highest || chosen.contains({w, o})) continue;
          highest = norm;
          best = {w, o};
        }
      }
      if (highest < 0) break;
      chosen.insert(best);
      needed -= static_cast<double>(positions(best.first));
    }
    for (std::size_t w = 0; w < scores_.size(); ++w) {
      std::vector<std::int64_t> tile;
      for (std::int64_t o = 0; o < scores_[w].dim(0); ++o) {
        if (chosen.contains({w, o})) tile.push_back(o);
        const bool full = static_cast<std::int64_t>(tile.size()) == group_;
        if (tile.empty() || (!full && o + 1 < scores_[w].dim(0))) continue;
        tiles_.push_back({w, tile});
        tile.clear();
      }
    }
  }
  void keep(std::int64_t kept) {
    struct Column {
      double norm;
      std::size_t tile;
      std::int64_t position;
    };
    std::vector<Column> columns;
    for (std::size_t t = 0; t < tiles_.size(); ++t) {
      const auto& [w, outputs] = tiles_[t];
      for (std::int64_t k = 0; k < positions(w); ++k) {
        double squares = 0;
        for (const std::int64_t o : outputs) squares += score(w, o, k) * score(w, o, k);
        columns.push_back({std::sqrt(squares) / static_cast<double>(outputs.size()), t, k});
      }
    }
    std::ranges::stable_sort(columns, [](const Column& a, const Column& b) { return a.norm > b.norm; });
    for (const Column& column : columns) {
      const auto& [w, outputs] = tiles_[column.tile];
      kept -= static_cast<std::int64_t>(outputs.size());
      if (kept < 0) return;
      for (const std::int64_t o : outputs) masks_[w].data<std::uint8_t>()[o * positions(w) + column.position] = 1;
    }
  }

  std::vector<Tensor> scores_;
  std::int64_t group_;
  std::vector<std::pair<std::size_t, std::vector<std::int64_t>>> tiles_;
  Masks masks_;
};

TEST(Tile, IsTheNaiveChoice) {
  const std::vector<std::vector<Shape>> sets{{{7, 5}}, {{16, 3, 3, 12}}, {{1, 1}}, {{13, 1}}, {{9, 4}, {5, 3, 3, 2}, {20, 7}}};
  for (const std::vector<Shape>& shapes : sets) {
    const std::vector<Tensor> scores = random_scores(shapes, 11);
    for (const std::int64_t group : {1, 3, 64}) {
      for (const double density : {0.0, 0.05, 0.25, 0.5, 0.81, 1.0}) {
        SCOPED_TRACE(str(shapes.size(), ' ', shapes[0], " in tiles of ", group, " at ", density));
        const std::int64_t kept = share(density, size_of(scores));
        const Masks masks = make_pattern({.pattern = "tile", .group = group})->project(scores, kept);
        const NaiveTiles naive(scores, kept, group);
        for (std::size_t i = 0; i < masks.size(); ++i) {
          EXPECT_EQ(masks[i].to_vector<std::uint8_t>(), naive.masks()[i].to_vector<std::uint8_t>());
        }
      }
    }
  }
}

// Tiles that scores of another seed would choose are a set of tiles of about the same size.
TEST(Tile, ScoresAsHighAsAnyRandomSetOfTiles) {
  const std::vector<Shape> shapes{{12, 3, 3, 8}, {10, 20}};
  const std::vector<Tensor> scores = random_scores(shapes, 13);
  const auto pattern = make_pattern({.pattern = "tile", .group = 4});
  const std::int64_t kept = size_of(scores) / 3;
  const Masks best = pattern->project(scores, kept);
  const double own = score_of(scores, best) / static_cast<double>(ones(best));
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    const Masks other = pattern->project(random_scores(shapes, 1000 + seed), kept);
    ASSERT_GE(own, score_of(scores, other) / static_cast<double>(ones(other))) << seed;
  }
}

TEST(TileElement, HoldsTheTilesOfASmallerCountAndTheBestOfTheRest) {
  const std::vector<Tensor> scores = random_scores({{12, 3, 3, 8}, {10, 20}}, 17);
  const std::int64_t total = size_of(scores), kept = total / 2, single = share(0.1, total);
  const Masks tiles = make_pattern({.pattern = "tile", .group = 4})->project(scores, kept - single);
  const Masks both = make_pattern({.pattern = "tile_element", .group = 4, .extra = 0.1})->project(scores, kept);
  EXPECT_EQ(ones(both), kept);
  double worst_added = 1, best_left = 0;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    for (std::int64_t k = 0; k < scores[i].numel(); ++k) {
      const double score = scores[i].data<float>()[k];
      const bool in_tile = tiles[i].data<std::uint8_t>()[k] != 0, is_kept = both[i].data<std::uint8_t>()[k] != 0;
      EXPECT_TRUE(is_kept || !in_tile);
      if (!in_tile && is_kept) worst_added = std::min(worst_added, score);
      if (!is_kept) best_left = std::max(best_left, score);
    }
  }
  EXPECT_GE(worst_added, best_left);
  const Masks alone = make_pattern({.pattern = "tile_element", .group = 4, .extra = 0.5})->project(scores, single);
  EXPECT_EQ(ones(alone), single) << "fewer than the single elements: no tile";
}

}  // namespace
}  // namespace tessera::testing
