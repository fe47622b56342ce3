#include "core/cpu/sparse/gradient_units.h"

#include <algorithm>
#include <utility>

#include "core/cpu/sparse/packer.h"
#include "core/support/rounding.h"

namespace tessera::cpu::sparse {
namespace {

constexpr std::int64_t kMostVectors = kSumPanel / kStripLanes;  // per run
constexpr std::int64_t kMostRowBytes = std::int64_t{512} << 10;  // bytes of y in a unit: half of the second-level cache

// Approximate cycles: a vector summed, a run's dot product stored, a float transposed, a vector copied.
constexpr double kSum = 0.6, kPutAway = 1.5, kTranspose = 1.0 / 3, kCopy = 2;

class PanelUnits final : public GradientUnits {
 public:
  PanelUnits(const Kernels& kernels, const GradientPlan& plan, const Window& window, const float* x, const float* grad_y)
      : packer_(kernels, window, x, kSumPanel), plan_(plan), positions_(window.positions()), grad_y_(grad_y) {
    // An even number of units if there are several, so that two threads get equally many.
    const std::int64_t panels = ceil_div(positions_, kSumPanel);
    width_ = kStripLanes *
             std::max<std::int64_t>(1, ceil_div(ceil_div(positions_, panels > 1 ? ceil_div(panels, 2) * 2 : 1), kStripLanes));
    zeros_.assign(static_cast<std::size_t>(plan.rows), 0.0F);
    pixels_.resize(kSumPanel);
  }

  std::int64_t count() const override { return ceil_div(positions_, width_); }
  std::int64_t x_floats() const override { return plan_.columns * kSumPanel; }
  std::int64_t y_pitch() const override { return kSumPanel; }
  std::span<const std::int32_t> offsets() override { return plan_.column_list; }

  std::span<const UnitRun> runs(std::int64_t unit) override {
    run_ = {0, 0, kStripLanes * ceil_div(positions_of(unit), kStripLanes)};
    return {&run_, 1};
  }

  void pack_x(std::int64_t unit, float* to) override {
    const std::int64_t count = positions_of(unit), whole = runs(unit).front().width;
    packer_.pack(unit * width_, count, to);
    for (std::int64_t c = 0; whole > count && c < plan_.columns; ++c) {
      std::fill(to + c * kSumPanel + count, to + c * kSumPanel + whole, 0.0F);
    }
  }

  std::span<const float* const> pixels(std::int64_t unit) override {
    const std::int64_t whole = runs(unit).front().width;
    for (std::int64_t i = 0; i < whole; ++i) {
      pixels_[i] = i < positions_of(unit) ? grad_y_ + (unit * width_ + i) * plan_.rows : zeros_.data();
    }
    return std::span(pixels_).first(static_cast<std::size_t>(whole));
  }

 private:
  std::int64_t positions_of(std::int64_t unit) const { return std::min(width_, positions_ - unit * width_); }

  Packer packer_;
  const GradientPlan& plan_;
  std::int64_t positions_, width_;
  const float* grad_y_;
  std::vector<float> zeros_;
  std::vector<const float*> pixels_;
  UnitRun run_{};
};

// Strips of `height` x `width` results. Sources are stored as [channels][cell_rows][step][phase][kStripLanes]: the sources that
// neighbouring results read with one tap are contiguous.
struct StripShape {
  StripShape(const Window& window, const Extent& size)
      : height(size.h), width(size.w), down(ceil_div(window.y.results, size.h)), across(ceil_div(window.x.results, size.w)) {
    groups = ceil_div(window.images * down * across, kStripLanes);
    cell_rows = (height - 1) * window.y.step + (window.y.taps - 1) * window.y.advance + 1;
    cell_columns = (width - 1) * window.x.step + (window.x.taps - 1) * window.x.advance + 1;
    phase = ceil_div(cell_columns, window.x.step);
    row_cells = phase * window.x.step;
    cells = cell_rows * row_cells | 1;  // odd: neighbouring channels begin in different cache sets
    results = height * width | 1;
  }

  std::int64_t height, width;
  std::int64_t down, across;  // strips of an image
  std::int64_t groups;
  std::int64_t cell_rows, cell_columns, phase, row_cells;
  std::int64_t cells, results;  // cells per channel, results per row
};

class StripUnits final : public GradientUnits {
 public:
  StripUnits(const Kernels& kernels, const GradientPlan& plan, const Window& window, const StripShape& strips, const float* x,
             const float* grad_y)
      : kernels_(kernels), plan_(plan), window_(window), strips_(strips), x_(x), grad_y_(grad_y) {
    zeros_.assign(static_cast<std::size_t>(std::max(window.channels, plan.rows)), 0.0F);
    pixels_.resize(static_cast<std::size_t>(y_pitch()));
    const std::int64_t pieces = ceil_div(strips.width, kMostVectors);
    for (std::int64_t row = 0; row < strips.height; ++row) {
      for (std::int64_t i = 0; i < pieces; ++i) {
        const std::int64_t first = strips.width * i / pieces, last = strips.width * (i + 1) / pieces;
        runs_.push_back({(row * window.y.step * strips.row_cells + first) * kStripLanes,
                         (row * strips.width + first) * kStripLanes, (last - first) * kStripLanes});
      }
    }
  }

  std::int64_t count() const override { return strips_.groups; }
  std::int64_t x_floats() const override { return window_.channels * strips_.cells * kStripLanes; }
  std::int64_t y_pitch() const override { return strips_.results * kStripLanes; }
  std::span<const UnitRun> runs(std::int64_t) override { return runs_; }

  std::span<const std::int32_t> offsets() override {
    std::vector<std::int32_t> of_column(static_cast<std::size_t>(plan_.columns));
    for (std::int64_t column = 0; column < plan_.columns; ++column) {
      const std::int64_t tap = column / window_.channels, across = tap % window_.x.taps * window_.x.advance;
      const std::int64_t cell = tap / window_.x.taps * window_.y.advance * strips_.row_cells +
                                across % window_.x.step * strips_.phase + across / window_.x.step;
      of_column[column] = static_cast<std::int32_t>((column % window_.channels * strips_.cells + cell) * kStripLanes);
    }
    offsets_.resize(plan_.column_list.size());
    std::ranges::transform(plan_.column_list, offsets_.begin(), [&](std::int32_t at) { return of_column[at / kSumPanel]; });
    return offsets_;
  }

  void pack_x(std::int64_t unit, float* to) override {
    find_lanes(unit);
    const float* pixels[kStripLanes];
    for (std::int64_t r = 0; r < strips_.cell_rows; ++r) {
      for (std::int64_t c = 0; c < strips_.cell_columns; ++c) {
        for (std::int64_t lane = 0; lane < kStripLanes; ++lane) pixels[lane] = source(lanes_[lane], r, c);
        const std::int64_t cell = r * strips_.row_cells + c % window_.x.step * strips_.phase + c / window_.x.step;
        kernels_.pack(pixels, kStripLanes, window_.channels, to + cell * kStripLanes, strips_.cells * kStripLanes);
      }
    }
  }

  std::span<const float* const> pixels(std::int64_t unit) override {
    find_lanes(unit);
    std::size_t next = 0;
    for (std::int64_t row = 0; row < strips_.height; ++row) {
      for (std::int64_t column = 0; column < strips_.width; ++column) {
        for (const Lane& lane : lanes_) pixels_[next++] = result(lane, row, column);
      }
    }
    std::fill(pixels_.begin() + static_cast<std::ptrdiff_t>(next), pixels_.end(), zeros_.data());
    return pixels_;
  }

 private:
  struct Lane {
    std::int64_t image, y, x;  // first result of the strip; image -1: none
  };

  void find_lanes(std::int64_t unit) {
    const std::int64_t each = strips_.down * strips_.across;
    for (std::int64_t lane = 0; lane < kStripLanes; ++lane) {
      const std::int64_t strip = unit * kStripLanes + lane;
      lanes_[lane] = strip >= window_.images * each ? Lane{-1, 0, 0}
                                                    : Lane{strip / each, strip % each / strips_.across * strips_.height,
                                                           strip % strips_.across * strips_.width};
    }
  }

  const float* source(const Lane& lane, std::int64_t row, std::int64_t column) const {
    const std::int64_t y = lane.y * window_.y.step + window_.y.first + row;
    const std::int64_t x = lane.x * window_.x.step + window_.x.first + column;
    if (lane.image < 0 || y < 0 || y >= window_.y.sources || x < 0 || x >= window_.x.sources) return zeros_.data();
    return x_ + ((lane.image * window_.y.sources + y) * window_.x.sources + x) * window_.channels;
  }

  const float* result(const Lane& lane, std::int64_t row, std::int64_t column) const {
    const std::int64_t y = lane.y + row, x = lane.x + column;
    if (lane.image < 0 || y >= window_.y.results || x >= window_.x.results) return zeros_.data();
    return grad_y_ + ((lane.image * window_.y.results + y) * window_.x.results + x) * plan_.rows;
  }

  const Kernels& kernels_;
  const GradientPlan& plan_;
  Window window_;
  StripShape strips_;
  const float* x_;
  const float* grad_y_;
  std::vector<float> zeros_;
  std::vector<const float*> pixels_;
  std::vector<UnitRun> runs_;
  std::vector<std::int32_t> offsets_;
  Lane lanes_[kStripLanes]{};
};

double cost_of(const StripShape& strips, const Window& window, const GradientPlan& plan) {
  const auto results = static_cast<double>(strips.height * strips.width);
  const auto runs = static_cast<double>(strips.height * ceil_div(strips.width, kMostVectors));
  const auto moved = static_cast<double>(strips.cells * window.channels + strips.results * plan.rows);
  return static_cast<double>(strips.groups) *
         (static_cast<double>(plan.sum_count) * (results * kSum + runs * kPutAway) + moved * kStripLanes * kTranspose);
}

double cost_of_panels(const Window& window, const GradientPlan& plan) {
  const double vectors = static_cast<double>(ceil_div(window.positions(), kStripLanes));
  const double copies =
      static_cast<double>(ceil_div(window.x.results, kStripLanes) * kStripLanes) / static_cast<double>(window.x.results);
  const auto sources = static_cast<double>(window.images * window.y.sources * window.x.sources * window.channels);
  return vectors *
             (static_cast<double>(plan.sum_count) * (kSum + kPutAway / kMostVectors) +
              static_cast<double>(plan.rows * kStripLanes) * kTranspose + static_cast<double>(plan.columns) * copies * kCopy) +
         sources * kTranspose;
}

}  // namespace

std::unique_ptr<GradientUnits> gradient_units(const Kernels& kernels, const GradientPlan& plan, const Window& window,
                                              const std::optional<Extent>& strips, const float* x, const float* grad_y) {
  if (!strips) return std::make_unique<PanelUnits>(kernels, plan, window, x, grad_y);
  return std::make_unique<StripUnits>(kernels, plan, window, StripShape(window, *strips), x, grad_y);
}

std::optional<Extent> gradient_strips(const GradientPlan& plan, const Window& window) {
  if (window.is_pointwise()) return {};
  std::optional<Extent> best;
  double least = cost_of_panels(window, plan);
  for (std::int64_t down = 1, before = 0; down <= window.y.results; ++down) {
    const std::int64_t height = ceil_div(window.y.results, down);
    if (height == std::exchange(before, height)) continue;
    for (std::int64_t across = 1; across <= window.x.results; ++across) {
      const StripShape strips(window, {height, ceil_div(window.x.results, across)});
      const auto bytes = [](std::int64_t vectors) { return vectors * kStripLanes * static_cast<std::int64_t>(sizeof(float)); };
      if (bytes(strips.results * plan.rows) > kMostRowBytes || bytes(strips.cells * window.channels) > 2 * kMostRowBytes)
        continue;
      const double cost = cost_of(strips, window, plan);
      if (cost < least) best = Extent{strips.height, strips.width}, least = cost;
    }
  }
  return best;
}

}  // namespace tessera::cpu::sparse
