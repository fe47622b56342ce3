#include "core/cpu/sparse/gradient_plan.h"

#include <algorithm>
#include <limits>

#include "core/cpu/sparse/between.h"
#include "core/support/error.h"

namespace tessera::cpu::sparse {
namespace {

constexpr std::int64_t kParts = 8;
constexpr std::int64_t kMostPartRows = 512;  // on average: the y of these rows in a unit stays in the second-level cache
constexpr std::int64_t kPartRows = kMostTileVectors * kTileLanes;  // parts start at multiples of this, where tiles usually do
constexpr std::int64_t kLeastTileRows = 9;  // fewer rows use a vector worse than dot products do
constexpr auto kPitch = static_cast<std::int32_t>(kSumPanel);
constexpr std::int64_t kCached = 480;  // vectors of x that stay in the first-level cache: 30 KiB

// Bounds of row ranges with about equal numbers of kept elements.
std::vector<std::int64_t> part_bounds(const SparseIndex& index) {
  const std::int64_t most = std::max(kParts, index.rows / kMostPartRows);
  std::vector<std::int64_t> bounds{0};
  for (std::int64_t r = kPartRows; r < index.rows; r += kPartRows) {
    if (static_cast<std::int64_t>(bounds.size()) < most &&
        index.offsets[r] * most >= index.count() * static_cast<std::int64_t>(bounds.size()))
      bounds.push_back(r);
  }
  bounds.push_back(index.rows);
  return bounds;
}

// The number of channels whose taps stay in the first-level cache while a row of 7 results reads them (gradient_units.h).
std::int64_t channels_of_block(std::int64_t taps) {
  std::int64_t side = 1;
  while (side * side < taps) ++side;
  return std::max<std::int64_t>(1, kCached / (side * (side + 7)));
}

class Builder {
 public:
  Builder(const SparseIndex& index, std::int64_t taps) : index_(index), groups_(rows_that_share_columns(index)) {
    plan_.rows = index.rows, plan_.columns = index.columns;
    width_ = index.columns / taps;
    block_channels_ = channels_of_block(taps);
  }

  void add_part(std::int64_t first, std::int64_t last) {
    GradientPlan::Part part{first, last, size(plan_.tiles), 0, size(plan_.blocks), 0, plan_.sum_count, 0};
    std::vector<std::int32_t> singles;
    for (const RowGroup& group : groups_) {
      std::span<const std::int32_t> rows = between(group.rows, first, last);
      while (static_cast<std::int64_t>(rows.size()) >= kLeastTileRows) {
        const auto most = static_cast<std::int64_t>(rows.size());
        // A tile has whole vectors of rows, and a last partial vector if it is full enough.
        const std::int64_t rest = most % kTileLanes < kLeastTileRows ? most % kTileLanes : 0;
        const std::int64_t count = std::min(kPartRows, most - rest);
        add_tile(rows.first(static_cast<std::size_t>(count)), group.columns);
        rows = rows.subspan(static_cast<std::size_t>(count));
      }
      singles.insert(singles.end(), rows.begin(), rows.end());
    }
    std::ranges::sort(singles);
    add_blocks(singles, static_cast<std::int32_t>(first));
    part.tiles = size(plan_.tiles) - part.tile;
    part.blocks = size(plan_.blocks) - part.block;
    part.sum_count = plan_.sum_count - part.sums;
    plan_.parts.push_back(part);
  }

  GradientPlan take() { return std::move(plan_); }

 private:
  struct Line {  // the elements that a row keeps in a block
    std::int32_t row;
    std::vector<std::int32_t> elements;
  };

  template <class T>
  static std::int64_t size(const std::vector<T>& v) {
    return static_cast<std::int64_t>(v.size());
  }

  void add_tile(std::span<const std::int32_t> rows, std::span<const std::int32_t> columns) {
    const GradientPlan::Tile tile{size(plan_.tile_rows), static_cast<std::int64_t>(rows.size()), size(plan_.column_list),
                                  static_cast<std::int64_t>(columns.size()), plan_.sum_count};
    plan_.tiles.push_back(tile);
    plan_.sum_count += tile.column_count * tile.vectors() * kTileLanes;
    for (const std::int32_t row : rows) plan_.tile_rows.push_back({row, static_cast<std::int32_t>(index_.offsets[row])});
    for (const std::int32_t column : columns) plan_.column_list.push_back(column * kPitch);
  }

  void add_blocks(std::span<const std::int32_t> rows, std::int32_t first_row) {
    std::vector<std::vector<Line>> blocks(static_cast<std::size_t>((width_ + block_channels_ - 1) / block_channels_));
    for (const std::int32_t row : rows) {
      for (std::int64_t i = index_.offsets[row]; i < index_.offsets[row + 1]; ++i) {
        std::vector<Line>& block = blocks[index_.indices[i] % width_ / block_channels_];
        if (block.empty() || block.back().row != row || size(block.back().elements) == kMostDots) block.push_back({row, {}});
        block.back().elements.push_back(static_cast<std::int32_t>(i));
      }
    }
    for (std::vector<Line>& block : blocks) {
      // Rows with equally many elements follow each other: the processor then predicts the end of each.
      std::ranges::stable_sort(block, {}, [](const Line& line) { return line.elements.size(); });
      if (!block.empty()) add_block(block, first_row);
    }
  }

  void add_block(const std::vector<Line>& lines, std::int32_t first_row) {
    GradientPlan::Block block{size(plan_.dot_rows),     size(lines), size(plan_.column_list),
                              size(plan_.dot_elements), 0,           plan_.sum_count};
    for (const Line& line : lines) {
      plan_.dot_rows.push_back({line.row - first_row, static_cast<std::int32_t>(line.elements.size())});
      for (const std::int32_t element : line.elements) {
        plan_.column_list.push_back(index_.indices[element] * kPitch);
        plan_.dot_elements.push_back(element);
      }
    }
    block.element_count = size(plan_.dot_elements) - block.elements;
    plan_.blocks.push_back(block);
    plan_.sum_count += (block.element_count + kTileLanes - 1) / kTileLanes * kTileLanes;
  }

  const SparseIndex& index_;
  std::vector<RowGroup> groups_;
  GradientPlan plan_;
  std::int64_t width_ = 0, block_channels_ = 0;
};

}  // namespace

GradientPlan gradient_plan(const SparseIndex& index, std::int64_t taps) {
  constexpr std::int64_t kMostColumns = std::numeric_limits<std::int32_t>::max() / kSumPanel;
  TESSERA_CHECK(index.columns <= kMostColumns, ShapeError, "sparse gradient: rows of ", index.columns,
                " weights are too long; needs at most ", kMostColumns);
  Builder builder(index, taps);
  const std::vector<std::int64_t> bounds = part_bounds(index);
  for (std::size_t i = 0; i + 1 < bounds.size(); ++i) builder.add_part(bounds[i], bounds[i + 1]);
  return builder.take();
}

}  // namespace tessera::cpu::sparse
