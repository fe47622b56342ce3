// A sparse matrix as the GPU's kernels walk it. It is made on the host, from the index that a SparseWeight has there anyway (its
// elements are counted and its costs told there, and a file's mask arrives there), and copied to the device once for a mask, not
// once for a product: an index made on the device would be a second one, of a mask that had to be copied first.
#pragma once

#include <cstdint>
#include <vector>

#include "core/sparse_index.h"
#include "core/tensor.h"

namespace tessera::cuda::sparse {

inline constexpr int kChunk = 16;  // kept elements of one row whose gradients a subwarp sums together

// Element i of row r, offsets[r] <= i < offsets[r + 1], is value from[i] at column indices[i], which is tap * width + channel.
// All tensors are i32, on one device.
struct Matrix {
  std::int64_t rows = 0, columns = 0, width = 0, count = 0;
  Tensor offsets;  // [rows + 1]
  Tensor indices;  // [count]
  Tensor from;  // [count]; undefined where it is the identity
  Tensor order;  // [rows]: the longest first, so that neighbours have about equal lengths and no long row begins last
  Tensor chunks;  // [chunks, 2]: row and first element of each kChunk elements, or fewer at the end of a row
};

// y = A x, whose columns are `taps` equal parts.
Matrix row_matrix(const SparseIndex& index, std::int64_t taps, Device device);
// y = A^T x, with rows and columns exchanged within each tap (core/sparse_index.h, transposed()).
Matrix column_matrix(const SparseIndex& index, std::int64_t taps, Device device);

// Rows by descending length, in their own order where lengths are equal.
std::vector<std::int32_t> rows_by_length(const SparseIndex& index);

}  // namespace tessera::cuda::sparse
