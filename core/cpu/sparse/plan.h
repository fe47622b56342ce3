// How a sparse matrix is walked: pieces of rows that share columns, in an order that keeps the panel's columns in the first-level
// cache. Blocks, tiles and whole channels become pieces of several rows, without being told of them.
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
  std::vector<std::int32_t> row_list, column_list;
  std::vector<std::int32_t> from;  // packed weight i is the kept element from[i]

  Lists lists(const Part& part) const { return {pieces.data() + part.piece, part.pieces, row_list.data(), column_list.data()}; }
};

// y = A x.
Plan row_plan(const SparseIndex& index);
// y = A^T x, with rows and columns exchanged within each tap (core/sparse_index.h, transposed()): by the pieces of A where rows
// share columns, else by the rows of A^T.
Plan column_plan(const SparseIndex& index, std::int64_t taps);

}  // namespace tessera::cpu::sparse
