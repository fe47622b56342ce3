// Walks over the outputs of a depthwise correlation, row by row, which say where the pixels of each lie. Each walk is for one
// thread.
#pragma once

#include <algorithm>
#include <vector>

#include "core/cpu/depthwise/problem.h"
#include "core/support/extent.h"

namespace tessera::cpu::depthwise {

struct Images {
  std::int64_t n, h, w;
};

// Output (y, x) of `to` meets tap (i, j) at pixel y * stride - padding + i * dilation, likewise x, of `from`. Negative padding
// begins inside the image.
struct Window {
  Images from, to;
  std::int64_t channels;
  Extent kernel, stride, padding, dilation;
};

bool takes_3x3(const Window& w);

// The outputs of `to`, from the pixels of `from`.
class StripWalk {
 public:
  // `zeros` has as many elements as a pixel has channels.
  StripWalk(const Window& window, const float* from, const float* zeros);

  Taps taps() const { return {taps_.data(), static_cast<std::int64_t>(taps_.size())}; }

  // Calls body(strip, row, count) for the rows [begin, end) of all images, up to `most` of one image at a time. More than one
  // needs dilation 1.
  template <class Body>
  void strips(std::int64_t begin, std::int64_t end, std::int64_t most, Body&& body) {
    for (std::int64_t row = begin; row < end;) {
      const std::int64_t count = std::min({most, end - row, window_.to.h - row % window_.to.h});
      body(strip_at(row, count), row, count);
      row += count;
    }
  }

  // The r-th row of a strip.
  Strip row(Strip strip, std::int64_t r) const {
    strip.pixels += r * window_.stride.h * strip.pitch;
    return strip;
  }

 private:
  const Strip& strip_at(std::int64_t row, std::int64_t count);

  Window window_;
  const float* from_;
  const float* zeros_;
  std::vector<const float*> pixels_;
  std::vector<Tap> taps_;
  Strip strip_;
};

// The other way round: the pixels of `from`, from the outputs of `to` that they gave something to. Pixels whose places differ by
// the stride have the same taps.
class GatherWalk {
 public:
  GatherWalk(const Window& window, const float* outputs, const float* zeros);

  // Calls body(strip, taps, first pixel) for the rows [begin, end) of pixels of all images.
  template <class Body>
  void strips(std::int64_t begin, std::int64_t end, Body&& body) {
    for (std::int64_t row = begin; row < end; ++row) {
      find_rows(row);
      for (const Phase& phase : phases_) {
        const Strip& strip = strip_of(phase);  // and its taps
        body(strip, Taps{taps_.data(), static_cast<std::int64_t>(taps_.size())}, row * window_.from.w + phase.first);
      }
    }
  }

 private:
  struct Meeting {
    std::int64_t tap;  // row or column of the filter
    std::int64_t output;  // row, or column of the phase's first pixel
  };
  struct Phase {
    std::int64_t first, count;  // pixels
    std::int64_t left, columns;  // outputs that they meet
    std::vector<Meeting> meetings;
  };

  void find_rows(std::int64_t row);
  const Strip& strip_of(const Phase& phase);

  Window window_;
  const float* outputs_;
  const float* zeros_;
  std::vector<Phase> phases_;
  std::int64_t image_ = 0;
  std::vector<Meeting> rows_;
  std::vector<const float*> pixels_;
  std::vector<Tap> taps_;
  Strip strip_;
};

}  // namespace tessera::cpu::depthwise
