// Which pixels a convolution reads at each position of its result.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "core/conv2d_geometry.h"
#include "core/support/host_device.h"

namespace tessera::cpu::sparse {

// The window of a convolution without groups. In the forward pass and the weight's gradient, results are pixels of y and sources
// pixels of x; in the input's gradient it is the other way round. A linear layer is a convolution of a single pixel.
struct Window {
  Window(const Conv2dGeometry& geometry, Conv2dPass pass);

  struct Axis {
    std::int64_t results, sources;  // pixels
    std::int64_t taps;
    std::int64_t step, first, advance;  // tap k of result i reads (i * step + first + k * advance) / divisor, where that is whole
    std::int64_t divisor;

    TESSERA_HD std::int64_t source_at(std::int64_t result, std::int64_t tap) const {  // -1: outside, or between two pixels
      const std::int64_t at = result * step + first + tap * advance;
      return at < 0 || at % divisor != 0 || at / divisor >= sources ? -1 : at / divisor;
    }

    // reach: from the lowest to the highest pixel that the taps of a result read. lowest: from its first tap to the lowest pixel,
    // 0 or less. Both hold for windows that slide.
    std::int64_t reach() const { return (taps - 1) * std::abs(advance); }
    std::int64_t lowest() const { return std::min<std::int64_t>(0, (taps - 1) * advance); }
  };

  std::int64_t images, channels;  // of the source
  Axis y, x;

  std::int64_t positions() const { return images * y.results * x.results; }
  std::int64_t taps() const { return y.taps * x.taps; }
  bool is_pointwise() const;  // each position reads the pixel of its own index
  bool slides() const { return y.divisor == 1 && x.divisor == 1; }
};

}  // namespace tessera::cpu::sparse
