#include "core/cpu/sparse/plan.h"

#include <algorithm>
#include <span>

namespace tessera::cpu::sparse {
namespace {

constexpr int kParts = 8;  // as many threads as share a single panel
constexpr std::int64_t kCached = 192;  // columns of a panel that stay in the first-level cache: 48 KiB
constexpr double kSharedRows = 4;  // mean rows of a piece from which A^T is multiplied by the pieces of A

constexpr std::int64_t kLanes = 16;  // of the widest vector: results leave their panel in blocks of so many rows

// Bounds of rows with about equal shares of `weight_of(row)`.
template <class WeightOf>
std::vector<std::int64_t> equal_shares(std::int64_t rows, const WeightOf& weight_of) {
  double total = 0;
  for (std::int64_t r = 0; r < rows; ++r) total += weight_of(r);
  std::vector<std::int64_t> bounds{0};
  double before = 0;
  for (std::int64_t r = 0; r < rows; ++r) {
    before += weight_of(r);
    if ((r + 1) % kLanes == 0 && static_cast<int>(bounds.size()) < kParts &&
        before >= total * static_cast<double>(bounds.size()) / kParts) {
      bounds.push_back(r + 1);
    }
  }
  if (bounds.back() != rows || rows == 0) bounds.push_back(rows);
  return bounds;
}

class Builder {
 public:
  Builder(std::int64_t rows, std::int64_t columns) { plan_.rows = rows, plan_.columns = columns; }

  void begin_part(std::int64_t first, std::int64_t last) {
    plan_.parts.push_back({first, last, static_cast<std::int64_t>(plan_.pieces.size()), 0});
  }

  // element(row, k): the kept element at this row and the k-th of the columns.
  template <class Element>
  void add(std::span<const std::int32_t> rows, std::span<const std::int32_t> columns, const Element& element) {
    if (rows.empty() || columns.empty()) return;
    const std::size_t first_column = plan_.column_list.size();
    plan_.column_list.insert(plan_.column_list.end(), columns.begin(), columns.end());
    for (std::size_t r = 0; r < rows.size(); r += kMostRows) {
      const std::span<const std::int32_t> some = rows.subspan(r, std::min<std::size_t>(kMostRows, rows.size() - r));
      plan_.pieces.push_back({static_cast<std::int32_t>(plan_.row_list.size()), static_cast<std::int32_t>(some.size()),
                              static_cast<std::int32_t>(first_column), static_cast<std::int32_t>(columns.size()),
                              static_cast<std::int64_t>(plan_.from.size())});
      plan_.row_list.insert(plan_.row_list.end(), some.begin(), some.end());
      for (std::size_t k = 0; k < columns.size(); ++k) {
        for (const std::int32_t row : some) plan_.from.push_back(static_cast<std::int32_t>(element(row, k)));
      }
      ++plan_.parts.back().pieces;
    }
  }

  Plan take() { return std::move(plan_); }

 private:
  Plan plan_;
};

std::span<const std::int32_t> between(std::span<const std::int32_t> sorted, std::int64_t first, std::int64_t last) {
  const auto begin = std::ranges::lower_bound(sorted, first);
  return {begin, std::lower_bound(begin, sorted.end(), last)};
}

// The outputs of A^T x that the pieces of A reach, tap by tap.
Plan scattered_plan(const SparseIndex& index, std::span<const RowGroup> groups, std::int64_t taps) {
  const std::int64_t width = index.columns / taps;
  std::vector<double> load(static_cast<std::size_t>(width), 0);
  for (const std::int32_t column : index.indices) ++load[column % width];
  const std::vector<std::int64_t> bounds = equal_shares(width, [&](std::int64_t c) { return load[c]; });
  Builder builder(width, taps * index.rows);
  for (std::size_t part = 0; part + 1 < bounds.size(); ++part) {
    builder.begin_part(bounds[part], bounds[part + 1]);
    for (const RowGroup& group : groups) {
      for (std::int64_t t = 0; t < taps; ++t) {
        const auto here = between(group.columns, t * width + bounds[part], t * width + bounds[part + 1]);
        std::vector<std::int32_t> outputs, inputs;
        for (const std::int32_t column : here) outputs.push_back(static_cast<std::int32_t>(column - t * width));
        for (const std::int32_t row : group.rows) inputs.push_back(static_cast<std::int32_t>(t * index.rows + row));
        if (outputs.empty()) continue;
        const std::int64_t before = here.data() - group.columns.data();
        builder.add(outputs, inputs, [&](std::int32_t output, std::size_t k) {
          const auto at = std::ranges::lower_bound(outputs, output) - outputs.begin();
          return index.offsets[group.rows[k]] + before + at;
        });
      }
    }
  }
  return builder.take();
}

// How many rows share a column, on average of the columns: 1 where no rows do.
double mean_rows_of(std::span<const RowGroup> groups) {
  double elements = 0, columns = 0;
  for (const RowGroup& group : groups) {
    columns += static_cast<double>(group.columns.size());
    elements += static_cast<double>(group.columns.size() * group.rows.size());
  }
  return columns == 0 ? 1 : elements / columns;
}

}  // namespace

Plan row_plan(const SparseIndex& index) {
  const std::vector<RowGroup> groups = rows_that_share_columns(index);
  const std::vector<std::int64_t> bounds =
      equal_shares(index.rows, [&](std::int64_t r) { return static_cast<double>(index.offsets[r + 1] - index.offsets[r]); });
  Builder builder(index.rows, index.columns);
  for (std::size_t part = 0; part + 1 < bounds.size(); ++part) {
    builder.begin_part(bounds[part], bounds[part + 1]);
    for (std::int64_t block = 0; block < index.columns; block += kCached) {
      for (const RowGroup& group : groups) {
        const auto rows = between(group.rows, bounds[part], bounds[part + 1]);
        const auto columns = between(group.columns, block, block + kCached);
        const std::int64_t before = columns.data() - group.columns.data();
        builder.add(rows, columns,
                    [&](std::int32_t row, std::size_t k) { return index.offsets[row] + before + static_cast<std::int64_t>(k); });
      }
    }
  }
  return builder.take();
}

Plan column_plan(const SparseIndex& index, std::int64_t taps) {
  if (const std::vector<RowGroup> groups = rows_that_share_columns(index); mean_rows_of(groups) >= kSharedRows) {
    return scattered_plan(index, groups, taps);
  }
  const TransposedIndex other = transposed(index, taps);
  Plan plan = row_plan(other.index);
  for (std::int32_t& element : plan.from) element = other.from[element];
  return plan;
}

}  // namespace tessera::cpu::sparse
