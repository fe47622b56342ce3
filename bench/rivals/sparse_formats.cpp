#include "bench/rivals/sparse_formats.h"

#include <algorithm>
#include <numeric>
#include <span>

#include "core/support/error.h"

namespace tessera::bench {
namespace {

std::span<const std::int32_t> columns_of(const SparseIndex& index, std::int64_t row) {
  return std::span(index.indices).subspan(index.offsets[row], index.offsets[row + 1] - index.offsets[row]);
}

// Whether a row's columns form whole groups of `size`.
bool in_groups(std::span<const std::int32_t> columns, std::int64_t size) {
  const std::int64_t count = std::ssize(columns);
  if (count % size != 0) return false;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t first = columns[i - i % size];
    if (first % size != 0 || columns[i] != first + i % size) return false;
  }
  return true;
}

void check_blocks(const SparseIndex& index, std::int64_t size) {
  bool whole = size > 0 && index.rows % size == 0 && index.columns % size == 0;
  for (std::int64_t row = 0; whole && row < index.rows; ++row) {
    whole = in_groups(columns_of(index, row), size) &&
            std::ranges::equal(columns_of(index, row), columns_of(index, row - row % size));
  }
  TESSERA_CHECK(whole, ShapeError, "block_index: what is kept is not whole blocks: the matrix is [", index.rows, ", ",
                index.columns, "], a block ", size, 'x', size);
}

}  // namespace

BlockIndex block_index(const SparseIndex& index, std::int64_t size) {
  check_blocks(index, size);
  BlockIndex blocks{.size = size, .offsets = {0}, .columns = {}, .places = {}};
  for (std::int64_t row = 0; row < index.rows; ++row) {
    const std::span<const std::int32_t> columns = columns_of(index, row);
    if (row % size == 0) {
      for (std::int64_t i = 0; i < std::ssize(columns); i += size) {
        blocks.columns.push_back(static_cast<std::int32_t>(columns[i] / size));
      }
      blocks.offsets.push_back(static_cast<std::int32_t>(blocks.columns.size()));
    }
    const std::int64_t first = blocks.offsets[row / size];
    for (std::int64_t i = 0; i < std::ssize(columns); ++i) {
      blocks.places.push_back(((first + i / size) * size + row % size) * size + i % size);
    }
  }
  return blocks;
}

EllIndex ell_index(const SparseIndex& index, const BlockIndex& blocks) {
  const std::vector<std::int32_t>& offsets = blocks.offsets;
  const std::int64_t rows = std::ssize(offsets) - 1;
  std::int64_t most = 0;
  for (std::int64_t row = 0; row < rows; ++row) most = std::max<std::int64_t>(most, offsets[row + 1] - offsets[row]);
  EllIndex ell{.size = blocks.size, .width = most * blocks.size, .columns = {}, .places = {}};
  ell.columns.assign(rows * most, -1);
  for (std::int64_t row = 0; row < rows; ++row) {
    std::copy(blocks.columns.begin() + offsets[row], blocks.columns.begin() + offsets[row + 1], ell.columns.begin() + row * most);
  }
  ell.places.resize(index.count());
  for (std::int64_t row = 0; row < index.rows; ++row) {
    std::iota(ell.places.begin() + index.offsets[row], ell.places.begin() + index.offsets[row + 1], row * ell.width);
  }
  return ell;
}

}  // namespace tessera::bench
