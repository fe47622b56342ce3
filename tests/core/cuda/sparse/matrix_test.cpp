// The sparse kernels' lists, walked on the host: every kept element is there once, whatever the mask.
#include "core/cuda/sparse/matrix.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace tessera::cuda::sparse {
namespace {

// [rows, columns], row r with as many elements as the r-th number says, every second column first.
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

TEST(GpuSparseMatrix, RowsDescendInLengthAndKeepTheirOrder) {
  const SparseIndex index = index_of({2, 0, 5, 2, 40, 1, 5}, 44);
  EXPECT_EQ(rows_by_length(index), (std::vector<std::int32_t>{4, 2, 6, 0, 3, 5, 1}));
}

TEST(GpuSparseMatrix, ChunksHoldEveryElementOnceAndStayInARow) {
  const SparseIndex index = index_of({0, 1, kChunk, kChunk + 1, 3 * kChunk - 1, 0}, 4 * kChunk);
  const Matrix matrix = row_matrix(index, 1, Device::cpu());
  const std::int32_t* const chunks = matrix.chunks.data<std::int32_t>();
  std::vector<int> seen(static_cast<std::size_t>(index.count()));
  for (std::int64_t i = 0; i < matrix.chunks.dim(0); ++i) {
    const std::int32_t row = chunks[2 * i], first = chunks[2 * i + 1];
    ASSERT_GE(first, index.offsets[row]);
    ASSERT_LT(first, index.offsets[row + 1]);
    for (std::int64_t e = first; e < std::min<std::int64_t>(first + kChunk, index.offsets[row + 1]); ++e) ++seen[e];
  }
  EXPECT_EQ(seen, std::vector<int>(seen.size(), 1));
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
  EXPECT_EQ(matrix.chunks.dim(0), 0);
  EXPECT_EQ(matrix.order.dim(0), 3);
}

}  // namespace
}  // namespace tessera::cuda::sparse
