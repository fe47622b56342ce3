#include "core/cpu/sparse/row_dots.h"

#include <algorithm>

#include "core/cpu/parallel.h"

namespace tessera::cpu::sparse {
namespace {

constexpr std::int64_t kElementsOfAThread = 16384;
constexpr std::int64_t kRowsAtOnce = 64;  // rows whose dot products are computed before their biases are added
constexpr std::size_t kGatheredRows = 8;  // in groups of so many rows or more, gathering the columns of x pays
constexpr std::int64_t kSums = 4;  // partial sums per dot product, so that no addition waits for the one before

// Dot products of a row with V vectors, whose columns are read in place by index.
template <int V>
void indexed_dots(std::span<const std::int32_t> columns, const float* values, const float* x, std::int64_t pitch, float* dots) {
  const auto count = static_cast<std::int64_t>(columns.size());
  float sums[V][kSums]{};
  std::int64_t i = 0;
  for (; i + kSums <= count; i += kSums) {
    for (std::int64_t k = 0; k < kSums; ++k) {
      for (int v = 0; v < V; ++v) sums[v][k] += values[i + k] * x[v * pitch + columns[i + k]];
    }
  }
  for (; i < count; ++i) {
    for (int v = 0; v < V; ++v) sums[v][0] += values[i] * x[v * pitch + columns[i]];
  }
  for (int v = 0; v < V; ++v) dots[v] = (sums[v][0] + sums[v][1]) + (sums[v][2] + sums[v][3]);
}

static_assert(kFewVectors == 4);
using IndexedDots = void (*)(std::span<const std::int32_t>, const float*, const float*, std::int64_t, float*);
constexpr IndexedDots kIndexedDots[kFewVectors] = {indexed_dots<1>, indexed_dots<2>, indexed_dots<3>, indexed_dots<4>};

// The work of one thread: up to kFewVectors vectors times some of the rows.
class FewProduct {
 public:
  FewProduct(const rows::Kernels& kernels, const SparseIndex& index, const float* values, std::int64_t vectors, const float* x,
             const float* bias, bool relu, float* y)
      : kernels_(kernels), index_(index), values_(values), vectors_(vectors), x_(x), bias_(bias), relu_(relu), y_(y) {}

  // Multiplies rows [begin, end) of a group.
  void multiply(const RowGroup& group, std::int64_t begin, std::int64_t end) {
    gather(group.columns);
    const auto count = static_cast<std::int64_t>(group.columns.size());
    const float* rows[kRowsAtOnce];
    float dots[kRowsAtOnce * kFewVectors];
    for (std::int64_t first = begin; first < end; first += kRowsAtOnce) {
      const std::int64_t here = std::min(kRowsAtOnce, end - first);
      for (std::int64_t i = 0; i < here; ++i) rows[i] = values_ + index_.offsets[group.rows[first + i]];
      kernels_.f32.dots(rows, here, count, x_columns_.data(), count, static_cast<int>(vectors_), dots);
      for (std::int64_t i = 0; i < here; ++i) set(group.rows[first + i], dots + i * vectors_);
    }
  }

  // Multiplies rows whose columns of x are read in place.
  void multiply(std::span<const std::int32_t> rows) const {
    const std::span<const std::int32_t> columns(index_.indices);
    float dots[kFewVectors];
    for (const std::int32_t row : rows) {
      const std::int64_t first = index_.offsets[row], count = index_.offsets[row + 1] - first;
      kIndexedDots[vectors_ - 1](columns.subspan(first, count), values_ + first, x_, index_.columns, dots);
      set(row, dots);
    }
  }

 private:
  void set(std::int64_t row, const float* dots) const {
    for (std::int64_t v = 0; v < vectors_; ++v) {
      const float sum = dots[v] + (bias_ != nullptr ? bias_[row] : 0.0F);
      y_[v * index_.rows + row] = relu_ && sum < 0 ? 0.0F : sum;
    }
  }

  // Gathers the columns of each vector into contiguous memory.
  void gather(std::span<const std::int32_t> columns) {
    x_columns_.clear();
    x_columns_.reserve(static_cast<std::size_t>(vectors_) * columns.size());
    for (std::int64_t v = 0; v < vectors_; ++v) {
      for (const std::int32_t column : columns) x_columns_.push_back(x_[v * index_.columns + column]);
    }
  }

  const rows::Kernels& kernels_;
  const SparseIndex& index_;
  const float* values_;
  std::int64_t vectors_;
  const float* x_;
  const float* bias_;
  bool relu_;
  float* y_;
  std::vector<float> x_columns_;
};

// The number of rows worth a thread, given that `rows` rows have `elements` elements in all.
std::int64_t grain_of(std::int64_t rows, std::int64_t elements) {
  return std::max<std::int64_t>(1, kElementsOfAThread * rows / std::max<std::int64_t>(1, elements));
}

}  // namespace

GroupedRows grouped_rows(const SparseIndex& index) {
  GroupedRows rows;
  std::vector<bool> grouped(static_cast<std::size_t>(index.rows), false);
  std::int64_t end = 0;
  rows.elements_alone = index.count();
  for (RowGroup& group : rows_that_share_columns(index)) {
    if (group.rows.size() < kGatheredRows) continue;
    for (const std::int32_t row : group.rows) grouped[row] = true;
    rows.elements_alone -= static_cast<std::int64_t>(group.rows.size() * group.columns.size());
    rows.ends.push_back(end += static_cast<std::int64_t>(group.rows.size()));
    rows.groups.push_back(std::move(group));
  }
  for (std::int32_t r = 0; r < index.rows; ++r) {
    if (!grouped[r]) rows.alone.push_back(r);
  }
  return rows;
}

void multiply_few(const rows::Kernels& kernels, const SparseIndex& index, const GroupedRows& rows, const float* values,
                  std::int64_t vectors, const float* x, const float* bias, bool relu, float* y) {
  const auto alone = static_cast<std::int64_t>(rows.alone.size()), grouped = rows.ends.empty() ? 0 : rows.ends.back();
  for (std::int64_t v = 0; v < vectors; v += kFewVectors) {
    const FewProduct product(kernels, index, values, std::min(kFewVectors, vectors - v), x + v * index.columns, bias, relu,
                             y + v * index.rows);
    parallel_for(alone, grain_of(alone, rows.elements_alone), [&](std::int64_t begin, std::int64_t end) {
      product.multiply(std::span(rows.alone).subspan(begin, end - begin));
    });
    parallel_for(grouped, grain_of(grouped, index.count() - rows.elements_alone), [&](std::int64_t begin, std::int64_t end) {
      FewProduct of_thread = product;
      auto group = std::ranges::upper_bound(rows.ends, begin) - rows.ends.begin();
      for (std::int64_t at = begin; at < end; at = rows.ends[group++]) {
        const std::int64_t first = group == 0 ? 0 : rows.ends[group - 1];
        of_thread.multiply(rows.groups[group], at - first, std::min(rows.ends[group], end) - first);
      }
    });
  }
}

}  // namespace tessera::cpu::sparse
