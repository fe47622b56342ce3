// Products of a sparse matrix with a few vectors: too few to fill the lanes of a panel (core/cpu/sparse/product.h).
#pragma once

#include <cstdint>
#include <vector>

#include "core/cpu/rows/problem.h"
#include "core/sparse_index.h"

namespace tessera::cpu::sparse {

// Up to this many vectors, dot products of rows take less time than a panel.
inline constexpr std::int64_t kFewVectors = rows::kMostVectors;

// The rows of a matrix: those that share their columns with some others, and the rest, empty ones too.
struct GroupedRows {
  std::vector<RowGroup> groups;
  std::vector<std::int64_t> ends;  // of each group, in rows of all groups
  std::vector<std::int32_t> alone;  // ascending
  std::int64_t elements_alone = 0;
};
GroupedRows grouped_rows(const SparseIndex& index);  // the index must stay where it is

// y [vectors, rows] = x [vectors, columns] A^T + bias, clamped from below at 0 with `relu`; the bias may be null. Values in the
// index's order. Every element is summed in the same order whatever the number of threads.
void multiply_few(const rows::Kernels& kernels, const SparseIndex& index, const GroupedRows& rows, const float* values,
                  std::int64_t vectors, const float* x, const float* bias, bool relu, float* y);

}  // namespace tessera::cpu::sparse
