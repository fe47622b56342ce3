// One row of outputs, of filters of any size: correlations, and the sums that are the filters' gradients.
// Included only by the files that build it for one instruction set each; W, the lanes of a vector, tells their instances apart.
#pragma once

#include "core/cpu/depthwise/vectors.h"

namespace tessera::cpu::depthwise {
namespace {

template <int W, int T>
[[gnu::always_inline]] inline void correlate_group(const Strip& strip, const Taps& taps, const float* filters,
                                                   const Epilogue& epilogue, std::int64_t first, std::int64_t c, float* y) {
  Vec<W> sum[T];
  const Vec<W> bias = bias_of<W>(epilogue, c);
  repeat<T>([&](auto t) __attribute__((always_inline)) { sum[t] = bias; });
  for (const Tap* tap = taps.first; tap != taps.first + taps.count; ++tap) {
    const Vec<W> filter = load<W>(filters + tap->weight * strip.channels + c);
    const float* const* const pixels = strip.pixels + tap->pixel + first * strip.step;
    repeat<T>([&](auto t) __attribute__((always_inline)) { sum[t] += load<W>(pixels[t * strip.step] + c) * filter; });
  }
  float* const to = y + first * strip.y_step + c;
  repeat<T>([&](auto t) __attribute__((always_inline)) { finish<W>(sum[t], epilogue, to + t * strip.y_step); });
}

template <int W>
void correlate(const Strip& strip, const Taps& taps, const float* filters, const Epilogue& epilogue, Channels channels,
               float* y) {
  for_each_group(strip.count, [&](std::int64_t first, auto outputs) {
    for_each_vector<W>(channels, [&](std::int64_t c, auto lanes) {
      correlate_group<lanes, outputs>(strip, taps, filters, epilogue, first, c, y);
    });
  });
}

template <int W, int T>
[[gnu::always_inline]] inline void add_group(const Strip& strip, const Taps& taps, const float* grad_y, std::int64_t first,
                                             std::int64_t c, float* sums) {
  Vec<W> grad[T];
  const float* const from = grad_y + first * strip.y_step + c;
  repeat<T>([&](auto t) __attribute__((always_inline)) { grad[t] = load<W>(from + t * strip.y_step); });
  for (const Tap* tap = taps.first; tap != taps.first + taps.count; ++tap) {
    float* const at = sums + tap->weight * strip.channels + c;
    const float* const* const pixels = strip.pixels + tap->pixel + first * strip.step;
    Vec<W> sum = load<W>(at);
    repeat<T>([&](auto t) __attribute__((always_inline)) { sum += load<W>(pixels[t * strip.step] + c) * grad[t]; });
    store<W>(sum, at);
  }
}

template <int W>
void add_filter_grad(const Strip& strip, const Taps& taps, const float* grad_y, Channels channels, float* sums) {
  for_each_group(strip.count, [&](std::int64_t first, auto outputs) {
    for_each_vector<W>(channels,
                       [&](std::int64_t c, auto lanes) { add_group<lanes, outputs>(strip, taps, grad_y, first, c, sums); });
  });
}

}  // namespace
}  // namespace tessera::cpu::depthwise
