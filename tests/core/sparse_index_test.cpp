#include "core/sparse_index.h"

#include <gtest/gtest.h>

#include "tests/support/message_of.h"

namespace tessera::testing {
namespace {

Tensor mask_of_bits(const Shape& shape, const std::vector<std::uint8_t>& bits) {
  const Tensor mask = Tensor::zeros(shape, DType::u8);
  std::copy(bits.begin(), bits.end(), mask.data<std::uint8_t>());
  return mask;
}

TEST(SparseIndex, OfAMaskAndBack) {
  const Tensor mask = mask_of_bits({3, 4}, {0, 1, 0, 1, 0, 0, 0, 0, 1, 1, 1, 0});
  const SparseIndex index = sparse_index(mask);
  EXPECT_EQ(index.offsets, (std::vector<std::int64_t>{0, 2, 2, 5}));
  EXPECT_EQ(index.indices, (std::vector<std::int32_t>{1, 3, 0, 1, 2}));
  EXPECT_EQ(mask_of(index, mask.shape()).to_vector<std::uint8_t>(), mask.to_vector<std::uint8_t>());
  EXPECT_EQ(message_of<ShapeError>([&] { mask_of(index, {3, 5}); }), "an index of 3 x 4 does not fit a mask of [3, 5]");
}

TEST(SparseIndex, OfAFilterHasRowsOfAllItsTaps) {
  const SparseIndex index = sparse_index(Tensor::full({2, 3, 3, 4}, 1, DType::u8));
  EXPECT_EQ(index.rows, 2);
  EXPECT_EQ(index.columns, 36);
  EXPECT_EQ(index.count(), 72);
}

// Row 2 keeps nothing. Row 3 keeps the columns of row 0, and row 4 those of row 1.
TEST(SparseIndex, RowsThatShareColumnsInTheOrderOfTheFirst) {
  const SparseIndex index = sparse_index(mask_of_bits({5, 3}, {0, 1, 1, 0, 1, 0, 0, 0, 0, 0, 1, 1, 0, 1, 0}));
  const std::vector<RowGroup> groups = rows_that_share_columns(index);
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(groups[0].rows, (std::vector<std::int32_t>{0, 3}));
  EXPECT_EQ(std::vector(groups[0].columns.begin(), groups[0].columns.end()), (std::vector<std::int32_t>{1, 2}));
  EXPECT_EQ(groups[1].rows, (std::vector<std::int32_t>{1, 4}));
  EXPECT_EQ(std::vector(groups[1].columns.begin(), groups[1].columns.end()), (std::vector<std::int32_t>{1}));
}

TEST(SparseIndex, Transposed) {
  const TransposedIndex other = transposed(sparse_index(mask_of_bits({3, 4}, {0, 1, 0, 1, 0, 0, 0, 0, 1, 1, 1, 0})));
  EXPECT_EQ(other.index.rows, 4);
  EXPECT_EQ(other.index.columns, 3);
  EXPECT_EQ(other.index.offsets, (std::vector<std::int64_t>{0, 1, 3, 4, 5}));
  EXPECT_EQ(other.index.indices, (std::vector<std::int32_t>{2, 0, 2, 2, 0}));
  EXPECT_EQ(other.from, (std::vector<std::int32_t>{2, 0, 3, 4, 1}));
}

// Elements (row, tap, channel) of two rows, two taps and two channels.
TEST(SparseIndex, TransposedWithinTaps) {
  const TransposedIndex other = transposed(sparse_index(mask_of_bits({2, 4}, {1, 0, 0, 1, 1, 1, 1, 0})), 2);
  EXPECT_EQ(other.index.rows, 2);
  EXPECT_EQ(other.index.columns, 4);
  EXPECT_EQ(other.index.offsets, (std::vector<std::int64_t>{0, 3, 5}));
  EXPECT_EQ(other.index.indices, (std::vector<std::int32_t>{0, 1, 3, 1, 2}));  // tap * 2 + row
  EXPECT_EQ(other.from, (std::vector<std::int32_t>{0, 2, 4, 3, 1}));
}

}  // namespace
}  // namespace tessera::testing
