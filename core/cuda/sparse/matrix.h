// A sparse matrix as the GPU's kernels walk it. It is made on the host, from the index that a SparseWeight has there anyway:
// elements are counted and costs are told there, and a file's mask arrives there. It is copied to the device once for a mask,
// not once for a product. An index made on the device would be a second one, of a mask that had to be copied first.
#pragma once

#include <cstdint>
#include <vector>

#include "core/sparse_index.h"
#include "core/tensor.h"

namespace tessera::cuda::sparse {

inline constexpr int kChunk = 16;  // kept elements of one row whose gradients a subwarp sums together
inline constexpr int kPieceRows = 16;  // most rows of a piece: those of a step on tensor cores
inline constexpr int kLeastPieceRows = 8;  // of fewer rows that keep the same columns, each is walked by itself
inline constexpr int kPieceColumns = 32;  // of a tile of a piece

// Element i of row r, offsets[r] <= i < offsets[r + 1], is value from[i] at column indices[i], which is tap * width + channel.
// All tensors are i32, on one device.
struct Matrix {
  std::int64_t rows = 0, columns = 0, width = 0, count = 0;
  Tensor offsets;  // [rows + 1]
  Tensor indices;  // [count]
  Tensor from;  // [count]; undefined where it is the identity
  // Rows in this order: the longest first, so that neighbours have about equal lengths and no long row begins last. Their kept
  // elements in chunks: row and first element of each kChunk elements, or fewer at the end of a row.
  struct Rows {
    Tensor order;  // [rows]
    Tensor chunks;  // [chunks, 2]
  };
  Rows all, alone;  // alone: those of no piece
  // Rows that keep the same columns: of blocks, of tiles, of a layer that whole inputs are pruned of.
  Tensor pieces;  // [pieces, kPieceRows]: the rows, -1 behind the last; those with the most columns first
  Tensor tiles;  // [tiles, 2]: piece and first of its columns, of kPieceColumns or fewer at the end of a piece
};

// y = A x, whose columns are `taps` equal parts.
Matrix row_matrix(const SparseIndex& index, std::int64_t taps, Device device);
// y = A^T x, with rows and columns exchanged within each tap (core/sparse_index.h, transposed()).
Matrix column_matrix(const SparseIndex& index, std::int64_t taps, Device device);

}  // namespace tessera::cuda::sparse
