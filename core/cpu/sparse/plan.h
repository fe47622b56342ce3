// How a sparse matrix is walked: pieces of rows that share columns, in an order that keeps the panel's columns in the first-level
// cache. The plan finds blocks, tiles and whole channels by itself: they become pieces of several rows.
#pragma once

#include <cstdint>
#include <vector>

#include "core/cpu/sparse/problem.h"
#include "core/sparse_index.h"

namespace tessera::cpu::sparse {

// Rows [first, last) of the result and the pieces that sum them. Threads share a panel by parts.
struct Part {
  std::int64_t first, last;
  std::int64_t piece, pieces;
};

struct Plan {
  std::int64_t rows = 0, columns = 0;
  std::vector<Piece> pieces;
  std::vector<Part> parts;
  std::vector<std::int32_t> row_list;
  std::vector<std::int32_t> column_list;  // column * kPanel: where it lies in a panel
  std::vector<std::int32_t> from;  // packed weight i is the kept element from[i]

  // The pieces of a part lie block by block: those of a block read the same few columns.
  std::int64_t blocks = 0;
  std::vector<std::int64_t> block_ends;  // [parts][blocks] of the pieces

  Lists lists(const Part& part) const { return {pieces.data() + part.piece, part.pieces, row_list.data(), column_list.data()}; }
  Lists lists(std::size_t part, std::int64_t block) const {
    const std::size_t at = part * static_cast<std::size_t>(blocks) + static_cast<std::size_t>(block);
    const std::int64_t first = block == 0 ? parts[part].piece : block_ends[at - 1];
    return {pieces.data() + first, block_ends[at] - first, row_list.data(), column_list.data()};
  }
};

// y = A x, with columns in `taps` equal parts of the same channels.
Plan row_plan(const SparseIndex& index, std::int64_t taps);
// y = A^T x, with rows and columns exchanged within each tap (core/sparse_index.h, transposed()): by the rows of A^T,
// unless only those of A share columns: then by the pieces of A.
Plan column_plan(const SparseIndex& index, std::int64_t taps);

}  // namespace tessera::cpu::sparse
