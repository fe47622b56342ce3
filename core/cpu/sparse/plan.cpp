#include "core/cpu/sparse/plan.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

#include "core/cpu/sparse/between.h"
#include "core/support/error.h"

namespace tessera::cpu::sparse {
namespace {

constexpr int kParts = 8;  // at most so many threads share a single panel
constexpr std::int64_t kCached = 144;  // columns of a panel that many rows use while they stay in the first-level cache: 36 KiB
constexpr double kSparseCached = 64;  // the same for single rows, divided by the square root of the density
constexpr std::size_t kSharedRows = 4;  // if so many rows keep the same columns, loads of x do not bound their product

constexpr std::int64_t kLanes = 16;  // of the widest vector: results leave their panel in blocks of so many rows

// Bounds of row ranges with about equal sums of `weight_of(row)`.
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
  Builder(std::int64_t rows, std::int64_t columns, std::int64_t blocks) {
    constexpr std::int64_t kMostColumns = std::numeric_limits<std::int32_t>::max() / kPanel;
    TESSERA_CHECK(columns <= kMostColumns, ShapeError, "sparse product: rows of ", columns,
                  " weights are too long; needs at most ", kMostColumns);
    plan_.rows = rows, plan_.columns = columns, plan_.blocks = blocks;
  }

  void begin_part(std::int64_t first, std::int64_t last) {
    plan_.parts.push_back({first, last, static_cast<std::int64_t>(plan_.pieces.size()), 0});
  }
  void end_block() { plan_.block_ends.push_back(static_cast<std::int64_t>(plan_.pieces.size())); }

  // Cuts the rows into pieces of about equal size: a piece of one row takes as many loads per column as a piece of six.
  // element(row, k): the kept element at this row and the k-th of the columns.
  template <class Element>
  void add(std::span<const std::int32_t> rows, std::span<const std::int32_t> columns, const Element& element) {
    if (rows.empty() || columns.empty()) return;
    const auto first_column = static_cast<std::int32_t>(plan_.column_list.size());
    for (const std::int32_t column : columns) plan_.column_list.push_back(column * static_cast<std::int32_t>(kPanel));
    const std::size_t count = (rows.size() + kMostRows - 1) / kMostRows;
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t begin = rows.size() * i / count, end = rows.size() * (i + 1) / count;
      const std::span<const std::int32_t> some = rows.subspan(begin, end - begin);
      plan_.pieces.push_back({static_cast<std::int32_t>(plan_.row_list.size()), static_cast<std::int32_t>(some.size()),
                              first_column, static_cast<std::int32_t>(columns.size()),
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

// A plan of A^T x that adds to the outputs that the row groups of A reach, tap by tap.
Plan scattered_plan(const SparseIndex& index, std::span<const RowGroup> groups, std::int64_t taps) {
  const std::int64_t width = index.columns / taps;
  std::vector<double> load(static_cast<std::size_t>(width), 0);
  for (const std::int32_t column : index.indices) ++load[column % width];
  const std::vector<std::int64_t> bounds = equal_shares(width, [&](std::int64_t c) { return load[c]; });
  Builder builder(width, taps * index.rows, 1);
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
    builder.end_block();
  }
  return builder.take();
}

// The mean number of rows that share a column: 1 if no rows do.
double mean_rows_of(std::span<const RowGroup> groups) {
  double elements = 0, columns = 0;
  for (const RowGroup& group : groups) {
    columns += static_cast<double>(group.columns.size());
    elements += static_cast<double>(group.columns.size() * group.rows.size());
  }
  return columns == 0 ? 1 : elements / columns;
}

// Rows of a group, some of its columns and the positions of these columns among all columns of the group.
struct Share {
  std::span<const std::int32_t> rows;
  std::vector<std::int32_t> columns;
  std::vector<std::int64_t> places;

  void add(const RowGroup& group, std::span<const std::int32_t> some) {
    for (const std::int32_t& column : some) {
      columns.push_back(column);
      places.push_back(&column - group.columns.data());
    }
  }
};

class RowPlanner {
 public:
  RowPlanner(const SparseIndex& index, std::int64_t taps)
      : index_(index),
        taps_(taps),
        width_(index.columns / taps),
        channels_(channels_of_block(index, taps)),
        blocks_((width_ + channels_ - 1) / channels_),
        groups_(rows_that_share_columns(index)),
        builder_(index.rows, index.columns, 1 + blocks_) {}

  Plan plan() {
    const std::vector<std::int64_t> bounds =
        equal_shares(index_.rows, [&](std::int64_t r) { return static_cast<double>(index_.offsets[r + 1] - index_.offsets[r]); });
    for (std::size_t part = 0; part + 1 < bounds.size(); ++part) {
      builder_.begin_part(bounds[part], bounds[part + 1]);
      add_shared(bounds[part], bounds[part + 1]);
      for (std::int64_t block = 0; block < blocks_; ++block) add_block(bounds[part], bounds[part + 1], block);
    }
    return builder_.take();
  }

 private:
  // Each block reads and writes every row of y once, so rows with fewer elements need wider blocks. Wider blocks, however, read
  // less of x from the first-level cache. Neighbouring positions share the pixels that their taps read: kPanel positions in
  // strips (strips.h) reach side * (side + kAtOnce - 1) times kStripLanes pixels.
  static std::int64_t channels_of_block(const SparseIndex& index, std::int64_t taps) {
    constexpr std::int64_t kAtOnce = kPanel / kStripLanes;
    const double elements = static_cast<double>(index.rows) * static_cast<double>(index.columns);
    const double density = elements == 0 ? 1 : static_cast<double>(index.count()) / elements;
    const double columns = std::min(kSparseCached / std::sqrt(std::max(density, 1e-3)), 512.0);
    const auto side = static_cast<std::int64_t>(std::ceil(std::sqrt(static_cast<double>(taps))));
    return std::max<std::int64_t>(1, static_cast<std::int64_t>(columns) * kAtOnce / (side * (side + kAtOnce - 1)));
  }

  static bool is_shared(const RowGroup& group) { return group.rows.size() >= kSharedRows; }

  // Takes as many columns at a time as stay in the first-level cache, of any channels and taps.
  void add_shared(std::int64_t first, std::int64_t last) {
    for (const RowGroup& group : groups_) {
      if (!is_shared(group)) continue;
      const std::size_t size = group.columns.size(), count = (size + kCached - 1) / kCached;
      for (std::size_t i = 0; i < count; ++i) {
        const std::size_t begin = size * i / count, end = size * (i + 1) / count;
        Share share{between(group.rows, first, last), {}, {}};
        share.add(group, group.columns.subspan(begin, end - begin));
        add(share);
      }
    }
    builder_.end_block();
  }

  // Adds the columns of a few channels, at every tap. Pieces of equal size follow each other, so that the processor predicts
  // where their loops end.
  void add_block(std::int64_t first, std::int64_t last, std::int64_t block) {
    std::vector<Share> shares;
    for (const RowGroup& group : groups_) {
      const auto rows = between(group.rows, first, last);
      if (is_shared(group) || rows.empty()) continue;
      Share& share = shares.emplace_back(Share{rows, {}, {}});
      for (std::int64_t t = 0; t < taps_; ++t) {
        const std::int64_t begin = t * width_ + block * channels_;
        share.add(group, between(group.columns, begin, std::min(begin + channels_, (t + 1) * width_)));
      }
    }
    std::ranges::stable_sort(shares, {}, [](const Share& s) { return std::pair(s.rows.size(), s.columns.size()); });
    for (const Share& share : shares) add(share);
    builder_.end_block();
  }

  void add(const Share& share) {
    builder_.add(share.rows, share.columns,
                 [&](std::int32_t row, std::size_t k) { return index_.offsets[row] + share.places[k]; });
  }

  const SparseIndex& index_;
  std::int64_t taps_, width_, channels_, blocks_;
  std::vector<RowGroup> groups_;
  Builder builder_;
};

}  // namespace

Plan row_plan(const SparseIndex& index, std::int64_t taps) { return RowPlanner(index, taps).plan(); }

Plan column_plan(const SparseIndex& index, std::int64_t taps) {
  const TransposedIndex other = transposed(index, taps);
  const std::vector<RowGroup> groups = rows_that_share_columns(index);
  if (const double mean = mean_rows_of(groups);
      mean >= kSharedRows && mean_rows_of(rows_that_share_columns(other.index)) < kSharedRows) {
    return scattered_plan(index, groups, taps);
  }
  Plan plan = row_plan(other.index, taps);
  for (std::int32_t& element : plan.from) element = other.from[element];
  return plan;
}

}  // namespace tessera::cpu::sparse
