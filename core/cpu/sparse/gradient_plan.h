// How the gradient of a sparse matrix's kept elements is summed: rows that share columns as small dense products, all others as
// dot products, in blocks of columns that stay in the first-level cache.
#pragma once

#include <cstdint>
#include <vector>

#include "core/cpu/sparse/problem.h"
#include "core/sparse_index.h"

namespace tessera::cpu::sparse {

struct GradientPlan {
  // Rows that keep the same columns. Their sums lie [columns][vectors * kTileLanes].
  struct Tile {
    std::int64_t rows, row_count;  // of `tile_rows`
    std::int64_t columns, column_count;  // of `column_list`; as many kept elements of each row, one after another
    std::int64_t sums;
    std::int64_t vectors() const { return (row_count + kTileLanes - 1) / kTileLanes; }
  };
  // Single rows of a part in some columns, whose sums lie in the order of their elements.
  struct Block {
    std::int64_t rows, row_count;  // of `dot_rows`
    std::int64_t columns;  // of `column_list`
    std::int64_t elements, element_count;  // of `dot_elements`
    std::int64_t sums;
  };
  struct TileRow {
    std::int32_t row;
    std::int32_t element;  // its first
  };
  // Rows [first, last) of the matrix. Threads share positions by parts.
  struct Part {
    std::int64_t first, last;
    std::int64_t tile, tiles;
    std::int64_t block, blocks;
    std::int64_t sums, sum_count;
  };

  std::int64_t rows = 0, columns = 0;
  std::vector<Part> parts;
  std::vector<Tile> tiles;
  std::vector<Block> blocks;
  std::vector<DotRow> dot_rows;  // counted from the first of their part
  std::vector<std::int32_t> dot_elements;
  std::vector<TileRow> tile_rows;
  std::vector<std::int32_t> column_list;  // column * kSumPanel: where it lies in a panel
  std::int64_t sum_count = 0;  // whole vectors: some are of no kept element
};

// Throws ShapeError for rows of 2^24 columns and more.
GradientPlan gradient_plan(const SparseIndex& index, std::int64_t taps);

}  // namespace tessera::cpu::sparse
