#include "core/cuda/sparse/matrix.h"

#include <algorithm>
#include <functional>

namespace tessera::cuda::sparse {
namespace {

Tensor on(Device device, const std::vector<std::int32_t>& numbers, const Shape& shape) {
  return Tensor::from(numbers, shape).to(device);
}

std::int64_t length_of(const SparseIndex& index, std::int32_t row) { return index.offsets[row + 1] - index.offsets[row]; }

Tensor pairs_on(Device device, const std::vector<std::int32_t>& numbers) {
  return on(device, numbers, {static_cast<std::int64_t>(numbers.size()) / 2, 2});
}

Matrix::Rows rows_of(const SparseIndex& index, std::vector<std::int32_t> rows, Device device) {
  std::vector<std::int32_t> chunks;
  for (const std::int32_t r : rows) {
    for (std::int64_t i = index.offsets[r]; i < index.offsets[r + 1]; i += kChunk) {
      chunks.push_back(r);
      chunks.push_back(static_cast<std::int32_t>(i));
    }
  }
  std::ranges::stable_sort(rows, std::ranges::greater(), [&](std::int32_t row) { return length_of(index, row); });
  return {on(device, rows, {static_cast<std::int64_t>(rows.size())}), pairs_on(device, chunks)};
}

// Row numbers [pieces][kPieceRows], -1 after the last row of a piece.
std::vector<std::int32_t> pieces_of(const SparseIndex& index) {
  std::vector<RowGroup> groups = rows_that_share_columns(index);
  std::ranges::stable_sort(groups, std::ranges::greater(), [](const RowGroup& group) { return group.columns.size(); });
  std::vector<std::int32_t> pieces;
  for (const RowGroup& group : groups) {
    for (std::size_t first = 0; first + kLeastPieceRows <= group.rows.size(); first += kPieceRows) {
      const std::size_t count = std::min<std::size_t>(kPieceRows, group.rows.size() - first);
      for (std::size_t m = 0; m < kPieceRows; ++m) pieces.push_back(m < count ? group.rows[first + m] : -1);
    }
  }
  return pieces;
}

std::vector<std::int32_t> tiles_of(const SparseIndex& index, const std::vector<std::int32_t>& pieces) {
  std::vector<std::int32_t> tiles;
  for (std::size_t piece = 0; piece < pieces.size() / kPieceRows; ++piece) {
    for (std::int64_t first = 0; first < length_of(index, pieces[piece * kPieceRows]); first += kPieceColumns) {
      tiles.push_back(static_cast<std::int32_t>(piece));
      tiles.push_back(static_cast<std::int32_t>(first));
    }
  }
  return tiles;
}

std::vector<std::int32_t> rows_alone(const SparseIndex& index, const std::vector<std::int32_t>& pieces) {
  std::vector<bool> taken(static_cast<std::size_t>(index.rows));
  for (const std::int32_t row : pieces) {
    if (row >= 0) taken[row] = true;
  }
  std::vector<std::int32_t> rows;
  for (std::int32_t r = 0; r < index.rows; ++r) {
    if (!taken[r]) rows.push_back(r);
  }
  return rows;
}

Matrix made_of(const SparseIndex& index, std::int64_t taps, const std::vector<std::int32_t>* from, Device device) {
  Matrix matrix;
  matrix.rows = index.rows;
  matrix.columns = index.columns;
  matrix.width = index.columns / taps;
  matrix.count = index.count();
  const std::vector<std::int32_t> offsets(index.offsets.begin(), index.offsets.end());  // fewer than 2^31 elements
  matrix.offsets = on(device, offsets, {index.rows + 1});
  matrix.indices = on(device, index.indices, {index.count()});
  if (from != nullptr) matrix.from = on(device, *from, {index.count()});
  const std::vector<std::int32_t> pieces = pieces_of(index);
  matrix.all = rows_of(index, rows_alone(index, {}), device);
  matrix.alone = pieces.empty() ? matrix.all : rows_of(index, rows_alone(index, pieces), device);
  matrix.pieces = on(device, pieces, {static_cast<std::int64_t>(pieces.size()) / kPieceRows, kPieceRows});
  matrix.tiles = pairs_on(device, tiles_of(index, pieces));
  return matrix;
}

}  // namespace

Matrix row_matrix(const SparseIndex& index, std::int64_t taps, Device device) { return made_of(index, taps, nullptr, device); }

Matrix column_matrix(const SparseIndex& index, std::int64_t taps, Device device) {
  const TransposedIndex other = transposed(index, taps);
  return made_of(other.index, taps, &other.from, device);
}

}  // namespace tessera::cuda::sparse
