// A sparse matrix in formats of blocks: where the blocks lie, and where the values that we have row by row go in them.
#pragma once

#include <cstdint>
#include <vector>

#include "core/sparse_index.h"

namespace tessera::bench {

// Blocks of `size` x `size`. Row r of blocks has elements [offsets[r], offsets[r + 1]) of `columns`, ascending; values of a
// block lie together, row by row.
struct BlockIndex {
  std::int64_t size = 0;
  std::vector<std::int32_t> offsets, columns;  // counted in blocks
  std::vector<std::int64_t> places;  // of each kept element, in the order of the index, among the values
};

// Throws ShapeError where what is kept is not whole blocks.
BlockIndex block_index(const SparseIndex& index, std::int64_t size);

// The same with as many blocks in every row of blocks: the values are a matrix [rows, width].
struct EllIndex {
  std::int64_t size = 0;
  std::int64_t width = 0;  // elements of a row
  std::vector<std::int32_t> columns;  // [rows / size, width / size], counted in blocks; -1: there is no block
  std::vector<std::int64_t> places;  // as above; the other values are 0
};

EllIndex ell_index(const SparseIndex& index, const BlockIndex& blocks);

}  // namespace tessera::bench
