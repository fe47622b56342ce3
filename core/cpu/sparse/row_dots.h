// Products of a sparse matrix with a few vectors: too few to fill the lanes of a panel (core/cpu/sparse/product.h).
#pragma once

#include "core/sparse_index.h"

namespace tessera::cpu::sparse {

// Up to this many vectors, dot products of rows take less time than a panel.
inline constexpr std::int64_t kFewVectors = 4;

// y [vectors, rows] = x [vectors, columns] A^T + bias, clamped from below at 0 with `relu`; the bias may be null. Values in the
// index's order. Every element is summed in the same order whatever the number of threads.
void multiply_few(const SparseIndex& index, const float* values, std::int64_t vectors, const float* x, const float* bias,
                  bool relu, float* y);

}  // namespace tessera::cpu::sparse
