// Compares sets of tiles with their definition.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <set>
#include <utility>

#include "compress/patterns/builtin.h"
#include "compress/patterns/tile.h"
#include "core/support/error.h"
#include "tests/compress/patterns/masks.h"

namespace tessera::testing {
namespace {

// The definition of a set of tiles without optimisation: outputs one by one, then columns of tiles one by one.
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

// Random tiles: some outputs of each weight, in tiles of `group`, and random positions of these tiles, as many as fit into
// `kept` elements.
Masks random_tiles(const std::vector<Shape>& shapes, std::int64_t kept, std::int64_t group, std::mt19937& random) {
  struct Column {
    std::size_t weight;
    std::int64_t position;
    std::vector<std::int64_t> outputs;
  };
  Masks masks;
  std::vector<Column> columns;
  for (std::size_t w = 0; w < shapes.size(); ++w) {
    masks.push_back(Tensor::zeros(shapes[w], DType::u8));
    std::vector<std::int64_t> outputs(static_cast<std::size_t>(shapes[w][0]));
    std::iota(outputs.begin(), outputs.end(), std::int64_t{0});
    std::ranges::shuffle(outputs, random);
    outputs.resize(1 + random() % outputs.size());
    std::ranges::sort(outputs);
    for (std::size_t begin = 0; begin < outputs.size(); begin += static_cast<std::size_t>(group)) {
      const auto end = std::min(begin + static_cast<std::size_t>(group), outputs.size());
      const std::vector<std::int64_t> tile(outputs.begin() + static_cast<std::ptrdiff_t>(begin),
                                           outputs.begin() + static_cast<std::ptrdiff_t>(end));
      for (std::int64_t k = 0; k < shapes[w].numel() / shapes[w][0]; ++k) columns.push_back({w, k, tile});
    }
  }
  std::ranges::shuffle(columns, random);
  for (const Column& column : columns) {
    if (kept < static_cast<std::int64_t>(column.outputs.size())) continue;
    kept -= static_cast<std::int64_t>(column.outputs.size());
    const std::int64_t positions = shapes[column.weight].numel() / shapes[column.weight][0];
    for (const std::int64_t o : column.outputs) masks[column.weight].data<std::uint8_t>()[o * positions + column.position] = 1;
  }
  return masks;
}

TEST(Tile, ScoresAsHighAsAnyRandomSetOfTiles) {
  const std::vector<Shape> shapes{{12, 3, 3, 8}, {10, 20}};
  const std::vector<Tensor> scores = random_scores(shapes, 13);
  const std::int64_t kept = size_of(scores) / 3;
  const Masks best = make_pattern({.pattern = "tile", .group = 4})->project(scores, kept);
  EXPECT_LE(ones(best), kept);
  EXPECT_GT(ones(best), kept - 4) << "no column of a tile fits any more";
  const double own = score_of(scores, best);
  std::mt19937 random(13);
  for (int i = 0; i < 1000; ++i) {
    const Masks other = random_tiles(shapes, kept, 4, random);
    ASSERT_LE(ones(other), kept);
    ASSERT_GE(own, score_of(scores, other)) << i;
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

// Scores of a weight in tiles of 8 outputs, where each tile favours other positions. Every fifth output scores lowest, and
// single elements stand out.
Tensor tiled_scores() {
  constexpr std::int64_t kOutputs = 40, kPositions = 180;
  const Tensor scores = random_scores({kOutputs, 3, 3, 20}, 19), by_tile = random_scores({4, kPositions}, 20);
  const Tensor spikes = random_scores({kOutputs, kPositions}, 21);
  std::int64_t rank = 0;  // rank among the outputs that stay
  for (std::int64_t o = 0; o < kOutputs; ++o) {
    for (std::int64_t k = 0; k < kPositions; ++k) {
      float& score = scores.data<float>()[o * kPositions + k];
      score = 0.01F + 0.3F * score + by_tile.data<float>()[rank / 8 * kPositions + k];
      if (o % 5 == 2) score *= 0.01F;
      if (spikes.data<float>()[o * kPositions + k] > 0.97F) score *= 6;
    }
    if (o % 5 != 2) ++rank;
    rank = std::min<std::int64_t>(rank, 31);
  }
  return scores;
}

// Whether each non-empty output equals a neighbouring one: the rows of a full tile are equal.
bool is_of_full_tiles(const Tensor& mask) {
  std::vector<Bits> rows;
  for (std::int64_t o = 0; o < mask.dim(0); ++o) {
    const Bits row = mask.slice(0, o, o + 1).contiguous().to_vector<std::uint8_t>();
    if (std::accumulate(row.begin(), row.end(), std::int64_t{0}) > 0) rows.push_back(row);
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if ((i == 0 || rows[i] != rows[i - 1]) && (i + 1 == rows.size() || rows[i] != rows[i + 1])) return false;
  }
  return !rows.empty();
}

TEST(TileElement, TilesAreFullAfterARampToo) {
  const Tensor scores = tiled_scores();
  const auto pattern = make_pattern({.pattern = "tile_element", .group = 8, .extra = 0.05});
  Tensor left = scores.clone();
  Bits before(static_cast<std::size_t>(scores.numel()), 1);
  for (const double density : {0.75, 0.5, 0.3, 0.2}) {
    const std::int64_t kept = share(density, scores.numel()), asked = kept - share(0.05, scores.numel());
    const Tensor tiles = TilePattern(8, /*beside_elements=*/true).project({&left, 1}, asked).front();
    EXPECT_TRUE(is_of_full_tiles(tiles)) << density;
    EXPECT_GE(ones(tiles), 0.7 * static_cast<double>(asked)) << density;
    const Tensor mask = pattern->project({&left, 1}, kept).front();
    EXPECT_EQ(ones(mask), kept);
    for (std::int64_t i = 0; i < mask.numel(); ++i) ASSERT_LE(tiles.data<std::uint8_t>()[i], mask.data<std::uint8_t>()[i]);
    const Bits now = mask.to_vector<std::uint8_t>();
    for (std::size_t i = 0; i < now.size(); ++i) {
      ASSERT_LE(now[i], before[i]) << "nothing comes back";
      if (now[i] == 0) left.data<float>()[i] = -1;
    }
    before = now;
  }
}

}  // namespace
}  // namespace tessera::testing
