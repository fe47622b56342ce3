// Walks the sparse kernels' lists on the host: they hold every kept element exactly once, whatever the mask.
#include "core/cuda/sparse/matrix.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace tessera::cuda::sparse {
namespace {

// A mask [rows, columns] in which row r keeps lengths[r] elements: every second column first, then the columns between.
SparseIndex index_of(const std::vector<std::int64_t>& lengths, std::int64_t columns) {
  const Tensor mask = Tensor::zeros({static_cast<std::int64_t>(lengths.size()), columns}, DType::u8);
  for (std::size_t r = 0; r < lengths.size(); ++r) {
    for (std::int64_t k = 0; k < lengths[r]; ++k) {
      const std::int64_t column = 2 * k < columns ? 2 * k : 2 * k % columns + 1 - columns % 2;
      mask.data<std::uint8_t>()[static_cast<std::int64_t>(r) * columns + column] = 1;
    }
  }
  return sparse_index(mask);
}

std::vector<std::int32_t> numbers(const Tensor& tensor) { return tensor.to_vector<std::int32_t>(); }

// Counts how often the chunks of `rows` and the tiles of pieces hold each element.
std::vector<int> times_held(const SparseIndex& index, const Matrix& matrix, const Matrix::Rows& rows, bool pieces) {
  std::vector<int> times(static_cast<std::size_t>(index.count()));
  const std::vector<std::int32_t> chunks = numbers(rows.chunks);
  for (std::size_t i = 0; i < chunks.size(); i += 2) {
    EXPECT_GE(chunks[i + 1], index.offsets[chunks[i]]);
    const std::int64_t end = std::min<std::int64_t>(chunks[i + 1] + kChunk, index.offsets[chunks[i] + 1]);
    for (std::int64_t e = chunks[i + 1]; e < end; ++e) ++times[e];
  }
  const std::vector<std::int32_t> tiles = pieces ? numbers(matrix.tiles) : std::vector<std::int32_t>();
  const std::vector<std::int32_t> lists = numbers(matrix.pieces);
  for (std::size_t i = 0; i < tiles.size(); i += 2) {
    for (int m = 0; m < kPieceRows; ++m) {
      const std::int32_t row = lists[static_cast<std::size_t>(tiles[i] * kPieceRows + m)];
      if (row < 0) continue;
      const std::int64_t first = index.offsets[row] + tiles[i + 1];
      const std::int64_t end = std::min<std::int64_t>(first + kPieceColumns, index.offsets[row + 1]);
      for (std::int64_t e = first; e < end; ++e) ++times[e];
    }
  }
  return times;
}

TEST(GpuSparseMatrix, RowsDescendInLengthAndKeepTheirOrder) {
  const Matrix matrix = row_matrix(index_of({2, 0, 5, 2, 40, 1, 5}, 44), 1, Device::cpu());
  EXPECT_EQ(numbers(matrix.all.order), (std::vector<std::int32_t>{4, 2, 6, 0, 3, 5, 1}));
  EXPECT_EQ(numbers(matrix.alone.order), numbers(matrix.all.order));
}

TEST(GpuSparseMatrix, RowsOfEqualColumnsArePieces) {
  std::vector<std::int64_t> lengths(40, 3);  // 8 rows of one length, 24 of another, too few of a third
  for (const std::size_t row : {0, 7, 11, 12, 20, 21, 30, 39}) lengths[row] = 34;
  for (const std::size_t row : {1, 2, 3, 4, 5, 6, 8}) lengths[row] = 1;
  lengths[9] = 0;
  const Matrix matrix = row_matrix(index_of(lengths, 70), 1, Device::cpu());
  const std::vector<std::int32_t> pieces = numbers(matrix.pieces);
  ASSERT_EQ(matrix.pieces.shape(), (Shape{3, kPieceRows}));
  EXPECT_EQ(std::vector(pieces.begin(), pieces.begin() + 9), (std::vector<std::int32_t>{0, 7, 11, 12, 20, 21, 30, 39, -1}));
  EXPECT_EQ(pieces[kPieceRows], 10);
  EXPECT_EQ(pieces[2 * kPieceRows - 1], 29);
  EXPECT_EQ(pieces[2 * kPieceRows], 31);
  EXPECT_EQ(pieces[2 * kPieceRows + 8], -1);
  EXPECT_EQ(numbers(matrix.tiles), (std::vector<std::int32_t>{0, 0, 0, kPieceColumns, 1, 0, 2, 0}));
  EXPECT_EQ(numbers(matrix.alone.order), (std::vector<std::int32_t>{1, 2, 3, 4, 5, 6, 8, 9}));
}

TEST(GpuSparseMatrix, ElementsAreHeldOnceByEitherWalk) {
  for (const std::vector<std::int64_t>& lengths :
       {std::vector<std::int64_t>{0, 1, kChunk, kChunk + 1, 3 * kChunk - 1, 0}, std::vector<std::int64_t>(19, kPieceColumns + 1),
        std::vector<std::int64_t>{5, 5, 5, 5, 5, 5, 2, 5, 5, 0}}) {
    const SparseIndex index = index_of(lengths, 4 * kChunk);
    const Matrix matrix = row_matrix(index, 1, Device::cpu());
    const std::vector<int> once(static_cast<std::size_t>(index.count()), 1);
    EXPECT_EQ(times_held(index, matrix, matrix.all, false), once);
    EXPECT_EQ(times_held(index, matrix, matrix.alone, true), once);
  }
}

TEST(GpuSparseMatrix, OfColumnsKnowsWhereItsValuesLie) {
  const SparseIndex index = index_of({3, 0, 12, 7}, 12);
  const Matrix matrix = column_matrix(index, 3, Device::cpu());
  EXPECT_EQ(matrix.rows, 4);
  EXPECT_EQ(matrix.columns, 12);
  EXPECT_EQ(matrix.width, 4);
  std::vector<std::int64_t> row_of;
  for (std::int64_t r = 0; r < index.rows; ++r) row_of.insert(row_of.end(), index.offsets[r + 1] - index.offsets[r], r);
  for (std::int64_t row = 0; row < matrix.rows; ++row) {
    for (std::int32_t i = matrix.offsets.data<std::int32_t>()[row]; i < matrix.offsets.data<std::int32_t>()[row + 1]; ++i) {
      const std::int32_t from = matrix.from.data<std::int32_t>()[i], at = matrix.indices.data<std::int32_t>()[i];
      EXPECT_EQ(at % index.rows, row_of[from]);
      EXPECT_EQ(at / index.rows * 4 + row, index.indices[from]);
    }
  }
  EXPECT_FALSE(row_matrix(index, 3, Device::cpu()).from.defined());
}

TEST(GpuSparseMatrix, OfNothing) {
  const Matrix matrix = row_matrix(index_of({0, 0, 0}, 5), 1, Device::cpu());
  EXPECT_EQ(matrix.count, 0);
  EXPECT_EQ(matrix.all.chunks.dim(0), 0);
  EXPECT_EQ(matrix.all.order.dim(0), 3);
  EXPECT_EQ(matrix.pieces.dim(0), 0);
}

}  // namespace
}  // namespace tessera::cuda::sparse
