// The positions of a convolution's result in units that fit the second-level cache, and what a gradient reads at them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/cpu/sparse/gradient_plan.h"
#include "core/cpu/sparse/window.h"

namespace tessera::cpu::sparse {

// `width` positions of a unit, up to kSumPanel and whole vectors of 16, that lie side by side in x and in y.
struct UnitRun {
  std::int64_t x, y;  // floats behind the first of a column, of a row
  std::int64_t width;
};

// A unit is a panel of positions (packer.h), or kStripLanes strips of images (strips.h), which hold each pixel once for all
// taps. An object is for one thread.
class GradientUnits {
 public:
  virtual ~GradientUnits() = default;

  virtual std::int64_t count() const = 0;
  virtual std::int64_t x_floats() const = 0;  // of a unit
  virtual std::int64_t y_pitch() const = 0;  // of a row of y
  // Where each column of the plan's list lies in x.
  virtual std::span<const std::int32_t> offsets() = 0;

  virtual std::span<const UnitRun> runs(std::int64_t unit) = 0;
  virtual void pack_x(std::int64_t unit, float* to) = 0;
  // The pixel of y at each of its positions in a row; zeros where there is none.
  virtual std::span<const float* const> pixels(std::int64_t unit) = 0;
};

// The strips that cost least, by counts of the vectors moved and multiplied; none where panels cost less.
std::optional<Extent> gradient_strips(const GradientPlan& plan, const Window& window);

// Strips of this height and width, or panels without them. `window` is that of a forward pass.
std::unique_ptr<GradientUnits> gradient_units(const Kernels& kernels, const GradientPlan& plan, const Window& window,
                                              const std::optional<Extent>& strips, const float* x, const float* grad_y);

}  // namespace tessera::cpu::sparse
