#include "core/sparse_index.h"

#include <algorithm>
#include <limits>
#include <map>

#include "core/support/error.h"

namespace tessera {

SparseIndex sparse_index(const Tensor& mask) {
  const std::int64_t rows = mask.dim(0);
  const std::int64_t columns = mask.shape().erase(0).numel();
  TESSERA_CHECK(columns <= std::numeric_limits<std::int32_t>::max() && mask.numel() <= std::numeric_limits<std::int32_t>::max(),
                ShapeError, "a sparse weight of ", mask.shape(), " has more than 2^31 - 1 elements");
  const Tensor dense = mask.contiguous();
  const std::uint8_t* const kept = dense.data<std::uint8_t>();
  SparseIndex index{.rows = rows, .columns = columns, .offsets = {0}, .indices = {}};
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < columns; ++c) {
      if (kept[r * columns + c] != 0) index.indices.push_back(static_cast<std::int32_t>(c));
    }
    index.offsets.push_back(index.count());
  }
  return index;
}

Tensor mask_of(const SparseIndex& index, const Shape& shape) {
  TESSERA_CHECK(shape.numel() == index.rows * index.columns, ShapeError, "an index of ", index.rows, " x ", index.columns,
                " does not fit a mask of ", shape);
  Tensor mask = Tensor::zeros(shape, DType::u8);
  std::uint8_t* const kept = mask.data<std::uint8_t>();
  for (std::int64_t r = 0; r < index.rows; ++r) {
    for (std::int64_t i = index.offsets[r]; i < index.offsets[r + 1]; ++i) kept[r * index.columns + index.indices[i]] = 1;
  }
  return mask;
}

std::vector<RowGroup> rows_that_share_columns(const SparseIndex& index) {
  using Columns = std::span<const std::int32_t>;
  const auto less = [](Columns a, Columns b) { return std::ranges::lexicographical_compare(a, b); };
  std::map<Columns, std::size_t, decltype(less)> known(less);
  std::vector<RowGroup> groups;
  for (std::int64_t r = 0; r < index.rows; ++r) {
    const auto begin = static_cast<std::size_t>(index.offsets[r]), end = static_cast<std::size_t>(index.offsets[r + 1]);
    if (begin == end) continue;
    const Columns columns = Columns(index.indices).subspan(begin, end - begin);
    const auto [found, is_new] = known.emplace(columns, groups.size());
    if (is_new) groups.push_back({{}, columns});
    groups[found->second].rows.push_back(static_cast<std::int32_t>(r));
  }
  return groups;
}

TransposedIndex transposed(const SparseIndex& index, std::int64_t taps) {
  const std::int64_t width = index.columns / taps;
  TransposedIndex made{.index = {.rows = width, .columns = taps * index.rows, .offsets = {}, .indices = {}}, .from = {}};
  made.index.offsets.assign(static_cast<std::size_t>(width) + 1, 0);
  for (const std::int32_t column : index.indices) ++made.index.offsets[column % width + 1];
  for (std::int64_t c = 0; c < width; ++c) made.index.offsets[c + 1] += made.index.offsets[c];
  made.index.indices.resize(index.indices.size());
  made.from.resize(index.indices.size());
  std::vector<std::int64_t> next(made.index.offsets.begin(), made.index.offsets.end() - 1);
  std::vector<std::int64_t> at(index.offsets.begin(), index.offsets.end() - 1);  // the next element of each row
  for (std::int64_t t = 0; t < taps; ++t) {
    for (std::int64_t r = 0; r < index.rows; ++r) {
      for (; at[r] < index.offsets[r + 1] && index.indices[at[r]] < (t + 1) * width; ++at[r]) {
        const std::int64_t to = next[index.indices[at[r]] - t * width]++;
        made.index.indices[to] = static_cast<std::int32_t>(t * index.rows + r);
        made.from[to] = static_cast<std::int32_t>(at[r]);
      }
    }
  }
  return made;
}

}  // namespace tessera
