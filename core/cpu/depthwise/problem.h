// The arguments of the depthwise kernels, the same for every instruction set. A channel of y is the correlation of the same
// channel of x with its own filter: all lanes of a vector of channels do the same, and a pixel is the address of its channels.
#pragma once

#include <cstdint>

namespace tessera::cpu::depthwise {

// What one filter element multiplies.
struct Tap {
  std::int64_t pixel;  // of the row's first output, in Strip::pixels
  std::int64_t weight;  // row of the packed filters [taps][channels]
};

// Some outputs of an image and the pixels that they read.
struct Strip {
  const float* const* pixels;  // channel 0 of each, in rows of `pitch`; zeros where the border lies
  std::int64_t pitch;
  std::int64_t step;  // pixels from an output's to those of the next in its row
  std::int64_t count;  // outputs in a row
  std::int64_t y_step, y_row;  // floats from an output to the next in its row, and to that below
  std::int64_t channels;
  std::int64_t ahead;  // floats to the pixels that only the strip below reads, which are to be fetched; 0: none are
};

struct Taps {
  const Tap* first;
  std::int64_t count;
};

struct Channels {
  std::int64_t first, last;
};

struct Epilogue {
  const float* bias = nullptr;
  bool relu = false;
  bool past_caches = false;  // whole cache lines of y may be written past the caches
};

// Built for one instruction set. `y` and `grad_y` are channel 0 of the strip's first output; filters, and sums of their
// gradients, are packed [taps][channels].
struct Kernels {
  std::int64_t lanes;  // of a vector
  std::int64_t rows;  // that the kernels of 3x3 filters take at most
  // One row of outputs.
  void (*correlate)(const Strip& strip, const Taps& taps, const float* filters, const Epilogue& epilogue, Channels channels,
                    float* y);
  void (*add_filter_grad)(const Strip& strip, const Taps& taps, const float* grad_y, Channels channels, float* sums);
  // Filters of 3x3 neighbouring pixels, in whole vectors of channels: `rows` rows of outputs whose pixels lie strip.step apart,
  // which is 1 or 2, along both axes.
  void (*correlate3x3)(const Strip& strip, std::int64_t rows, const float* filters, const Epilogue& epilogue, Channels channels,
                       float* y);
  void (*add_filter_grad3x3)(const Strip& strip, std::int64_t rows, const float* grad_y, Channels channels, float* sums);
};

extern const Kernels kAvx2Kernels;
extern const Kernels kAvx512Kernels;  // AVX-512 F, VL, DQ and BW

}  // namespace tessera::cpu::depthwise
