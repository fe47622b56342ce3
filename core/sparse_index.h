// Which elements of a matrix are kept, row by row.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/tensor.h"

namespace tessera {

struct SparseIndex {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::vector<std::int64_t> offsets;  // rows + 1: those of row r are [offsets[r], offsets[r + 1]) of `indices`
  std::vector<std::int32_t> indices;  // columns, ascending within a row

  std::int64_t count() const { return static_cast<std::int64_t>(indices.size()); }
};

// The index of a mask (u8 on the CPU, 0 = not kept) of rank 1 or more. Its rows are the first dimension. Throws ShapeError if it
// has 2^31 elements or more.
SparseIndex sparse_index(const Tensor& mask);

// The mask (u8 on the CPU) of `shape` that keeps what the index keeps.
Tensor mask_of(const SparseIndex& index, const Shape& shape);

// Rows that keep the same columns, which are the index's own.
struct RowGroup {
  std::vector<std::int32_t> rows;  // ascending
  std::span<const std::int32_t> columns;
};

// Groups all rows that are not empty. The groups are in the order of their first rows.
std::vector<RowGroup> rows_that_share_columns(const SparseIndex& index);

struct TransposedIndex {
  SparseIndex index;
  std::vector<std::int32_t> from;  // element i of `index` is element from[i] of the original
};

// Rows and columns exchanged within each of `taps` equal parts of the columns: element (r, t * width + c) becomes
// (c, t * rows + r), as the gradient of a convolution's input needs it. One tap: the transposed matrix.
TransposedIndex transposed(const SparseIndex& index, std::int64_t taps = 1);

}  // namespace tessera
