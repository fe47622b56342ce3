#include "core/cpu/sparse/strips.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/cpu/parallel.h"
#include "core/support/rounding.h"
#include "core/tensor.h"

namespace tessera::cpu::sparse {
namespace {

constexpr std::int64_t kAtOnce = kPanel / kStripLanes;  // neighbouring results of a strip that are multiplied together
// Cells are this far apart, modulo kPage. Otherwise the same channels of the cells that taps reach would compete for the few
// ways of one set of the first-level cache.
constexpr std::int64_t kPage = 1024, kSpread = 384;  // floats
constexpr std::int64_t kMostBytes = std::int64_t{640} << 10;  // bytes of a group's cells, to fit into the second-level cache

// Approximate cycles per element with 16 lanes: a multiply-add, a transposed float, a copied vector.
constexpr double kMultiply = 1.0 / 20, kTranspose = 1.0 / 3, kCopy = 2;

// Estimated cycles of the whole product with strips.
double cost_of(const Strips& strips, const Window& window, const Plan& plan) {
  const double groups = static_cast<double>(strips.groups(window));
  const double results = static_cast<double>(strips.height * ceil_div(strips.width, kAtOnce) * kPanel);
  const double cells = static_cast<double>(strips.cell_rows * strips.cell_columns * window.channels * kStripLanes);
  return groups * (results * static_cast<double>(plan.from.size()) * kMultiply + cells * kTranspose);
}

// Estimated cycles with panels of positions: each tap copies its pixels, in runs as long as a row of the result.
double cost_of_panels(const Window& window, const Plan& plan) {
  const auto positions = static_cast<double>(window.positions());
  const double copies = static_cast<double>(ceil_div(window.x.results, kStripLanes)) / static_cast<double>(window.x.results);
  const auto channels = static_cast<double>(window.channels);
  return positions * (static_cast<double>(plan.from.size()) * kMultiply + channels * kTranspose +
                      static_cast<double>(window.taps()) * channels * copies * kCopy);
}

// Multiplies one group of strips at a time. Each thread has its own.
class Group {
 public:
  Group(const Kernels& kernels, const Window& window, const Strips& strips, const Plan& plan, const float* x, float* y,
        float* memory)
      : kernels_(kernels), window_(window), strips_(strips), x_(x), y_(y), rows_(plan.rows), cells_(memory) {
    panel_ = cells_ + cell_floats() * strips.cell_rows * strips.cell_columns;
    zeros_.assign(static_cast<std::size_t>(window.channels), 0.0F);
    unused_.resize(static_cast<std::size_t>(plan.rows));
  }

  static std::int64_t memory(const Window& window, const Strips& strips, const Plan& plan) {
    return strips.cell_floats(window) * strips.cell_rows * strips.cell_columns + plan.rows * kPanel;
  }

  void pack(std::int64_t group) {
    for (std::int64_t lane = 0; lane < kStripLanes; ++lane) lanes_[lane] = lane_of(group * kStripLanes + lane);
    const float* pixels[kStripLanes];
    for (std::int64_t r = 0; r < strips_.cell_rows; ++r) {
      for (std::int64_t c = 0; c < strips_.cell_columns; ++c) {
        for (std::int64_t lane = 0; lane < kStripLanes; ++lane) pixels[lane] = pixel(lanes_[lane], r, c);
        kernels_.pack(pixels, kStripLanes, window_.channels, cell(r, c), kStripLanes);
      }
    }
  }

  // Computes the results of row `row` and `count` columns from `column` on, for every strip.
  void multiply(const std::int32_t* offsets, const Plan& plan, const float* weights, const float* bias, bool relu,
                std::int64_t row, std::int64_t column, std::int64_t count) {
    for (std::int64_t r = 0; r < rows_; ++r) std::fill_n(panel_ + r * kPanel, kPanel, bias != nullptr ? bias[r] : 0.0F);
    float* results[kPanel];
    for (std::int64_t i = 0; i < count; ++i) {
      for (std::int64_t lane = 0; lane < kStripLanes; ++lane)
        results[i * kStripLanes + lane] = result(lanes_[lane], row, column + i);
    }
    const float* const from = cell(row * window_.y.step, column * window_.x.step);
    for (std::int64_t block = 0; block < plan.blocks; ++block) {
      for (std::size_t part = 0; part < plan.parts.size(); ++part) {
        Lists own = plan.lists(part, block);
        own.column_list = offsets;
        kernels_.strip_product(own, weights, from, window_.x.step * cell_floats(), count * kStripLanes, panel_);
      }
    }
    kernels_.unpack(panel_, kPanel, count * kStripLanes, rows_, relu, results);
  }

 private:
  struct Lane {
    std::int64_t image, y, x;  // first result of the strip; image -1: none
  };

  std::int64_t cell_floats() const { return strips_.cell_floats(window_); }
  float* cell(std::int64_t row, std::int64_t column) const {
    return cells_ + (row * strips_.cell_columns + column) * cell_floats();
  }

  Lane lane_of(std::int64_t strip) const {
    const std::int64_t each = strips_.down * strips_.across;
    if (strip >= window_.images * each) return {-1, 0, 0};
    return {strip / each, strip % each / strips_.across * strips_.height, strip % strips_.across * strips_.width};
  }

  const float* pixel(const Lane& lane, std::int64_t row, std::int64_t column) const {
    const std::int64_t y = lane.y * window_.y.step + window_.y.first + window_.y.lowest() + row;
    const std::int64_t x = lane.x * window_.x.step + window_.x.first + window_.x.lowest() + column;
    if (lane.image < 0 || y < 0 || y >= window_.y.sources || x < 0 || x >= window_.x.sources) return zeros_.data();
    return x_ + ((lane.image * window_.y.sources + y) * window_.x.sources + x) * window_.channels;
  }

  float* result(const Lane& lane, std::int64_t row, std::int64_t column) {
    const std::int64_t y = lane.y + row, x = lane.x + column;
    if (lane.image < 0 || y >= window_.y.results || x >= window_.x.results) return unused_.data();
    return y_ + ((lane.image * window_.y.results + y) * window_.x.results + x) * rows_;
  }

  const Kernels& kernels_;
  const Window& window_;
  const Strips& strips_;
  const float* x_;
  float* y_;
  std::int64_t rows_;
  float* cells_;
  float* panel_;
  Lane lanes_[kStripLanes];
  std::vector<float> zeros_, unused_;
};

// The offset of each column of the plan from the first cell that a result reads.
std::vector<std::int32_t> offsets_of(const Plan& plan, const Window& window, const Strips& strips) {
  std::vector<std::int32_t> of_column(static_cast<std::size_t>(plan.columns));
  for (std::int64_t column = 0; column < plan.columns; ++column) {
    const std::int64_t tap = column / window.channels;
    const std::int64_t row = tap / window.x.taps * window.y.advance - window.y.lowest();
    const std::int64_t cell = row * strips.cell_columns + tap % window.x.taps * window.x.advance - window.x.lowest();
    of_column[column] = static_cast<std::int32_t>(cell * strips.cell_floats(window) + column % window.channels * kStripLanes);
  }
  std::vector<std::int32_t> offsets(plan.column_list.size());
  std::ranges::transform(plan.column_list, offsets.begin(), [&](std::int32_t at) { return of_column[at / kPanel]; });
  return offsets;
}

}  // namespace

std::int64_t Strips::cell_floats(const Window& window) const {
  const std::int64_t floats = window.channels * kStripLanes;
  return floats + ((kSpread - floats) % kPage + kPage) % kPage;
}

std::int64_t Strips::groups(const Window& window) const { return ceil_div(window.images * down * across, kStripLanes); }

Strips strips_of(const Window& window, std::int64_t height, std::int64_t width) {
  return {height,
          width,
          ceil_div(window.y.results, height),
          ceil_div(window.x.results, width),
          (height - 1) * window.y.step + window.y.reach() + 1,
          (width - 1) * window.x.step + window.x.reach() + 1};
}

std::optional<Strips> best_strips(const Window& window, const Plan& plan) {
  if (window.is_pointwise() || !window.slides()) return {};
  std::optional<Strips> best;
  double least = cost_of_panels(window, plan);
  for (std::int64_t height = 1; height <= window.y.results; ++height) {
    for (std::int64_t width = std::min(kAtOnce, window.x.results); width <= window.x.results; ++width) {
      const Strips strips = strips_of(window, height, width);
      const std::int64_t floats = strips.cell_rows * strips.cell_columns * window.channels * kStripLanes;
      if (floats * static_cast<std::int64_t>(sizeof(float)) > kMostBytes) break;
      // Two or more threads need enough groups, of about equal size.
      if (strips.groups(window) < 4) continue;
      const double cost = cost_of(strips, window, plan);
      if (cost < least) best = strips, least = cost;
    }
  }
  return best;
}

void multiply_strips(const Kernels& kernels, const Plan& plan, const float* weights, const Window& window, const Strips& strips,
                     const float* x, const float* bias, bool relu, float* y) {
  const std::vector<std::int32_t> offsets = offsets_of(plan, window, strips);
  const double flops = 2.0 * static_cast<double>(plan.from.size()) * static_cast<double>(window.positions());
  const std::int64_t groups = strips.groups(window);
  const int parts = threads_for(flops, groups);
  const std::int64_t each = Group::memory(window, strips, plan);
  const Tensor memory = Tensor::empty({parts, each});
  parallel_parts(groups, parts, [&](std::int64_t begin, std::int64_t end, int thread) {
    Group group(kernels, window, strips, plan, x, y, memory.data<float>() + thread * each);
    for (std::int64_t g = begin; g < end; ++g) {
      group.pack(g);
      for (std::int64_t row = 0; row < strips.height; ++row) {
        for (std::int64_t column = 0; column < strips.width; column += kAtOnce) {
          group.multiply(offsets.data(), plan, weights, bias, relu, row, column, std::min(kAtOnce, strips.width - column));
        }
      }
    }
  });
}

}  // namespace tessera::cpu::sparse
