#include "bench/rivals/sparse_formats.h"

#include <gtest/gtest.h>

#include <numeric>

#include "core/support/error.h"

namespace tessera::bench {
namespace {

// The index of a mask that keeps the blocks marked in `blocks`: row by row, with `across` blocks in a row.
SparseIndex kept_blocks(const std::vector<int>& blocks, std::int64_t across, std::int64_t size) {
  const std::int64_t rows = std::ssize(blocks) / across * size, columns = across * size;
  Tensor mask = Tensor::zeros({rows, columns}, DType::u8);
  for (std::int64_t i = 0; i < mask.numel(); ++i) {
    mask.data<std::uint8_t>()[i] = blocks[i / columns / size * across + i % columns / size];
  }
  return sparse_index(mask);
}

// The dense matrix in which the elements of the index have the values 1, 2, ...
std::vector<float> dense_of(const SparseIndex& index) {
  std::vector<float> dense(index.rows * index.columns);
  for (std::int64_t row = 0; row < index.rows; ++row) {
    for (std::int64_t i = index.offsets[row]; i < index.offsets[row + 1]; ++i) {
      dense[row * index.columns + index.indices[i]] = static_cast<float>(i + 1);
    }
  }
  return dense;
}

std::vector<float> laid_out(const std::vector<std::int64_t>& places, std::size_t size) {
  std::vector<float> values(size);
  for (std::size_t i = 0; i < places.size(); ++i) values[places[i]] = static_cast<float>(i + 1);
  return values;
}

std::vector<float> read_blocks(const SparseIndex& index, const BlockIndex& blocks) {
  const std::vector<float> values = laid_out(blocks.places, index.indices.size());
  std::vector<float> dense(index.rows * index.columns);
  for (std::int64_t row = 0; row < index.rows; ++row) {
    for (std::int64_t b = blocks.offsets[row / blocks.size]; b < blocks.offsets[row / blocks.size + 1]; ++b) {
      for (std::int64_t column = 0; column < blocks.size; ++column) {
        dense[row * index.columns + blocks.columns[b] * blocks.size + column] =
            values[(b * blocks.size + row % blocks.size) * blocks.size + column];
      }
    }
  }
  return dense;
}

std::vector<float> read_ell(const SparseIndex& index, const EllIndex& ell) {
  const std::vector<float> values = laid_out(ell.places, index.rows * ell.width);
  const std::int64_t across = ell.width / ell.size;
  std::vector<float> dense(index.rows * index.columns);
  for (std::int64_t row = 0; row < index.rows; ++row) {
    for (std::int64_t column = 0; column < ell.width; ++column) {
      const std::int64_t block = ell.columns[row / ell.size * across + column / ell.size];
      const float value = values[row * ell.width + column];
      if (block >= 0) {
        dense[row * index.columns + block * ell.size + column % ell.size] = value;
      } else {
        EXPECT_EQ(value, 0) << "a value where there is no block";
      }
    }
  }
  return dense;
}

const std::vector<int> kRagged{0, 1, 1, 0, 0, 0, 1, 1, 1};  // 3x3 blocks: rows of two, none and three

TEST(SparseFormats, BlocksHoldWhatTheIndexKeeps) {
  for (const std::int64_t size : {1, 2, 5}) {
    const SparseIndex index = kept_blocks(kRagged, 3, size);
    const BlockIndex blocks = block_index(index, size);
    EXPECT_EQ(blocks.offsets, (std::vector<std::int32_t>{0, 2, 2, 5}));
    EXPECT_EQ(blocks.columns, (std::vector<std::int32_t>{1, 2, 0, 1, 2}));
    EXPECT_EQ(read_blocks(index, blocks), dense_of(index)) << size;
  }
}

TEST(SparseFormats, RowsOfBlockedEllAreOfOneWidth) {
  for (const std::int64_t size : {1, 2, 5}) {
    const SparseIndex index = kept_blocks(kRagged, 3, size);
    const EllIndex ell = ell_index(index, block_index(index, size));
    EXPECT_EQ(ell.width, 3 * size);
    EXPECT_EQ(ell.columns, (std::vector<std::int32_t>{1, 2, -1, -1, -1, -1, 0, 1, 2}));
    EXPECT_EQ(read_ell(index, ell), dense_of(index)) << size;
  }
}

TEST(SparseFormats, TransposedBlocksAreBlocks) {
  const SparseIndex index = transposed(kept_blocks({1, 0, 1, 1, 1, 0}, 3, 4)).index;
  EXPECT_EQ(block_index(index, 4).columns, (std::vector<std::int32_t>{0, 1, 1, 0}));
}

TEST(SparseFormats, NothingIsNoBlock) {
  const SparseIndex index = kept_blocks({0, 0}, 2, 3);
  const BlockIndex blocks = block_index(index, 3);
  EXPECT_EQ(blocks.offsets, (std::vector<std::int32_t>{0, 0}));
  EXPECT_EQ(ell_index(index, blocks).width, 0);
}

TEST(SparseFormats, WhatIsNotWholeBlocksIsRefused) {
  const SparseIndex index = kept_blocks({1, 0, 0, 1}, 2, 4);
  EXPECT_EQ(block_index(index, 2).columns.size(), 8u);
  EXPECT_THROW(block_index(index, 8), ShapeError);
  EXPECT_THROW(block_index(index, 3), ShapeError);
  EXPECT_THROW(block_index(index, 0), ShapeError);
  SparseIndex moved = index;  // its first row has a block off the grid
  std::iota(moved.indices.begin(), moved.indices.begin() + 4, 2);
  EXPECT_THROW(block_index(moved, 4), ShapeError);
  SparseIndex split = index;  // its first row differs from the rest of its block
  std::iota(split.indices.begin(), split.indices.begin() + 4, 4);
  EXPECT_THROW(block_index(split, 4), ShapeError);
}

}  // namespace
}  // namespace tessera::bench
