// How the sparse kernels traverse a matrix: pieces of rows that share columns, tiles and dot products.
#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <vector>

#include "core/cpu/sparse/gradient_plan.h"
#include "core/cpu/sparse/plan.h"
#include "core/cpu/sparse/row_dots.h"
#include "core/support/error.h"
#include "tests/core/cpu/sparse_problem.h"

namespace tessera::cpu::sparse {
namespace {

TEST(SparsePlan, RowsThatShareColumnsArePiecesTogether) {
  const Problem tiles({65, 1, 1, 40, 48, 1, .5, 16});
  for (const Piece& piece : row_plan(tiles.index, 1).pieces) EXPECT_GE(piece.row_count, 2);
  const Problem scattered({65, 1, 1, 40, 48, 1, .5, 1});
  for (const Piece& piece : row_plan(scattered.index, 1).pieces) EXPECT_EQ(piece.row_count, 1);
}

TEST(SparsePlan, RowsAreCutIntoPiecesOfAboutOneSize) {
  const Plan plan = row_plan(Problem({65, 1, 1, 40, 16, 1, .5, 16}).index, 1);
  ASSERT_EQ(plan.pieces.size(), 3U);
  for (const Piece& piece : plan.pieces) EXPECT_GE(piece.row_count, 5);
}

TEST(SparsePlan, SingleRowsOfABlockGoByTheirLength) {
  const Plan plan = row_plan(Problem({1, 1, 1, 500, 70, 1, .1, 1}).index, 1);
  ASSERT_GE(plan.blocks, 3);
  std::int64_t pieces = 0;
  for (std::size_t part = 0; part < plan.parts.size(); ++part) {
    for (std::int64_t block = 0; block < plan.blocks; ++block) {
      const Lists lists = plan.lists(part, block);
      const std::span<const Piece> here(lists.pieces, static_cast<std::size_t>(lists.count));
      EXPECT_TRUE(std::ranges::is_sorted(here, {}, &Piece::column_count)) << "part " << part << " block " << block;
      pieces += lists.count;
    }
  }
  EXPECT_EQ(pieces, static_cast<std::int64_t>(plan.pieces.size()));
}

// The rows of a group read their columns of x once. Empty rows, and fewer than eight that share columns, are read one by one.
TEST(SparseGroupedRows, ManyThatShareColumnsAreGroupsAndOthersAlone) {
  const Problem tiles({1, 1, 1, 300, 325, 1, .4, 64});
  const GroupedRows rows = grouped_rows(tiles.index);
  EXPECT_EQ(rows.groups.size(), 5U);
  EXPECT_EQ(rows.ends, (std::vector<std::int64_t>{64, 128, 192, 256, 320}));
  EXPECT_EQ(rows.alone, (std::vector<std::int32_t>{320, 321, 322, 323, 324}));
  EXPECT_EQ(rows.elements_alone, tiles.index.count() - tiles.index.offsets[320]);
  const GroupedRows scattered = grouped_rows(Problem({1, 1, 1, 300, 48, 1, .4, 1}).index);
  EXPECT_TRUE(scattered.groups.empty());
  EXPECT_EQ(scattered.alone.size(), 48U);
  const GroupedRows empty = grouped_rows(Problem({1, 1, 1, 30, 48, 1, 0, 48}).index);
  EXPECT_EQ(empty.alone.size(), 48U);
  EXPECT_EQ(empty.elements_alone, 0);
}

TEST(SparseGradientPlan, RowsThatShareColumnsAreTilesAndOthersDotProducts) {
  const Problem tiles({65, 1, 1, 40, 128, 1, .5, 64});
  const GradientPlan shared = gradient_plan(tiles.index, 1);
  EXPECT_EQ(shared.tiles.size(), 2);
  EXPECT_TRUE(shared.dot_rows.empty());
  const Problem scattered({65, 1, 1, 40, 48, 1, .5, 1});
  const GradientPlan single = gradient_plan(scattered.index, 1);
  EXPECT_TRUE(single.tiles.empty());
  std::int64_t kept = 0;
  for (const DotRow& row : single.dot_rows) kept += row.count;
  EXPECT_EQ(kept, scattered.index.count());
}

TEST(SparseGradientPlan, RefusesRowsTooLongForItsOffsets) {
  const SparseIndex index{.rows = 1, .columns = std::int64_t{1} << 24, .offsets = {0, 0}, .indices = {}};
  try {
    gradient_plan(index, 1);
    FAIL() << "2^24 columns of 128 positions";
  } catch (const ShapeError& error) {
    EXPECT_STREQ(error.what(), "sparse gradient: rows of 16777216 weights are too long; needs at most 16777215");
  }
}

}  // namespace
}  // namespace tessera::cpu::sparse
