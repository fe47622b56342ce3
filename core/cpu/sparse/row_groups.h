// Rows of a sparse matrix that keep the same columns.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/sparse_index.h"

namespace tessera::cpu::sparse {

struct RowGroup {
  std::vector<std::int32_t> rows;
  std::span<const std::int32_t> columns;  // of the index
};

// In the order of their first rows; rows that keep nothing are in none.
std::vector<RowGroup> row_groups(const SparseIndex& index);

// Those of ascending numbers that lie in [first, last).
std::span<const std::int32_t> between(std::span<const std::int32_t> ascending, std::int64_t first, std::int64_t last);

}  // namespace tessera::cpu::sparse
