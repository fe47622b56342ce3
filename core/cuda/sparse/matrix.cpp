#include "core/cuda/sparse/matrix.h"

#include <algorithm>
#include <numeric>

namespace tessera::cuda::sparse {
namespace {

Tensor on(Device device, const std::vector<std::int32_t>& numbers, const Shape& shape) {
  return Tensor::from(numbers, shape).to(device);
}

std::vector<std::int32_t> chunks_of(const SparseIndex& index) {
  std::vector<std::int32_t> chunks;
  for (std::int64_t r = 0; r < index.rows; ++r) {
    for (std::int64_t i = index.offsets[r]; i < index.offsets[r + 1]; i += kChunk) {
      chunks.push_back(static_cast<std::int32_t>(r));
      chunks.push_back(static_cast<std::int32_t>(i));
    }
  }
  return chunks;
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
  matrix.order = on(device, rows_by_length(index), {index.rows});
  const std::vector<std::int32_t> chunks = chunks_of(index);
  matrix.chunks = on(device, chunks, {static_cast<std::int64_t>(chunks.size()) / 2, 2});
  return matrix;
}

}  // namespace

std::vector<std::int32_t> rows_by_length(const SparseIndex& index) {
  std::vector<std::int32_t> rows(static_cast<std::size_t>(index.rows));
  std::iota(rows.begin(), rows.end(), 0);
  const auto length = [&](std::int32_t row) { return index.offsets[row + 1] - index.offsets[row]; };
  std::ranges::stable_sort(rows, [&](std::int32_t a, std::int32_t b) { return length(a) > length(b); });
  return rows;
}

Matrix row_matrix(const SparseIndex& index, std::int64_t taps, Device device) { return made_of(index, taps, nullptr, device); }

Matrix column_matrix(const SparseIndex& index, std::int64_t taps, Device device) {
  const TransposedIndex other = transposed(index, taps);
  return made_of(other.index, taps, &other.from, device);
}

}  // namespace tessera::cuda::sparse
