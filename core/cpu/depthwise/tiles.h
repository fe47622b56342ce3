// Correlations with 3x3 filters, and the sums that are their gradients, in tiles of outputs that share what they load.
// Included only by the files that build it for one instruction set each; W, the lanes of a vector, tells their instances apart.
#pragma once

#include "core/cpu/depthwise/vectors.h"

namespace tessera::cpu::depthwise {
namespace {

constexpr int kSide = 3;
constexpr int kTaps = kSide * kSide;

// use(x, row, column, tap) for every product of R x T outputs whose pixels lie S apart; each pixel is loaded once.
template <int W, int S, int R, int T, class Use>
[[gnu::always_inline]] inline void for_each_product(const float* const* const* rows, std::int64_t c, Use&& use) {
  repeat<(R - 1) * S + kSide>([&](auto i) __attribute__((always_inline)) {
    repeat<(T - 1) * S + kSide>([&](auto j) __attribute__((always_inline)) {
      const Vec<W> x = load<W>(rows[i][j] + c);
      repeat<R>([&](auto r) __attribute__((always_inline)) {
        repeat<T>([&](auto t) __attribute__((always_inline)) {
          constexpr int kRow = decltype(i)::value - decltype(r)::value * S;
          constexpr int kColumn = decltype(j)::value - decltype(t)::value * S;
          if constexpr (kRow >= 0 && kRow < kSide && kColumn >= 0 && kColumn < kSide) {
            use(x, r, t, std::integral_constant<int, kRow * kSide + kColumn>());
          }
        });
      });
    });
  });
}

// Into the second-level cache: these are more streams than the processor foresees.
template <int S, int R, int T>
[[gnu::always_inline]] inline void fetch_ahead(const Strip& strip, const float* const* const* rows, std::int64_t c) {
  constexpr int kShared = kSide - S;  // rows of pixels that both strips read
  repeat<R * S>([&](auto i) __attribute__((always_inline)) {
    repeat<T * S>([&](auto j) __attribute__((always_inline)) {
      __builtin_prefetch(rows[kShared + i][kSide / 2 + j] + c + strip.ahead, 0, 2);
    });
  });
}

template <int W, int S, int R, int T>
void correlate_tile(const Strip& strip, const float* filters, const Epilogue& epilogue, std::int64_t first, Channels channels,
                    float* y) {
  constexpr int kHigh = (R - 1) * S + kSide;
  const float* const* rows[kHigh];
  repeat<kHigh>([&](auto i) { rows[i] = strip.pixels + i * strip.pitch + first * S; });
  for (std::int64_t c = channels.first; c < channels.last; c += W) {
    Vec<W> filter[kTaps];
    Vec<W> sum[R][T];
    repeat<kTaps>([&](auto tap) __attribute__((always_inline)) { filter[tap] = load<W>(filters + tap * strip.channels + c); });
    const Vec<W> bias = bias_of<W>(epilogue, c);
    repeat<R * T>([&](auto k) __attribute__((always_inline)) { sum[k / T][k % T] = bias; });
    for_each_product<W, S, R, T>(
        rows, c, [&](const Vec<W>& x, auto r, auto t, auto tap) __attribute__((always_inline)) { sum[r][t] += x * filter[tap]; });
    if (strip.ahead != 0) fetch_ahead<S, R, T>(strip, rows, c);
    float* const to = y + first * strip.y_step + c;
    repeat<R * T>([&](auto k) __attribute__((always_inline)) {
      finish<W>(sum[k / T][k % T], epilogue, to + k / T * strip.y_row + k % T * strip.y_step);
    });
  }
}

template <int W, int S, int R, int T>
void add_tile(const Strip& strip, const float* grad_y, std::int64_t first, Channels channels, float* sums) {
  constexpr int kHigh = (R - 1) * S + kSide;
  const float* const* rows[kHigh];
  repeat<kHigh>([&](auto i) { rows[i] = strip.pixels + i * strip.pitch + first * S; });
  for (std::int64_t c = channels.first; c < channels.last; c += W) {
    Vec<W> grad[R][T];
    Vec<W> sum[kTaps];
    const float* const from = grad_y + first * strip.y_step + c;
    repeat<R * T>([&](auto k) __attribute__((always_inline)) {
      grad[k / T][k % T] = load<W>(from + k / T * strip.y_row + k % T * strip.y_step);
    });
    repeat<kTaps>([&](auto tap) __attribute__((always_inline)) { sum[tap] = load<W>(sums + tap * strip.channels + c); });
    for_each_product<W, S, R, T>(
        rows, c, [&](const Vec<W>& x, auto r, auto t, auto tap) __attribute__((always_inline)) { sum[tap] += x * grad[r][t]; });
    if (strip.ahead != 0) fetch_ahead<S, R, T>(strip, rows, c);
    repeat<kTaps>([&](auto tap) __attribute__((always_inline)) { store<W>(sum[tap], sums + tap * strip.channels + c); });
  }
}

// Rows whose sums and filters fill the registers. There are 32 registers with 16 lanes, 16 with 8.
template <int W>
inline constexpr int kMostRows = W == 16 ? 2 : 1;

// step(stride, rows) with both as constants.
template <int W, class Step>
[[gnu::always_inline]] inline void with_constants(const Strip& strip, std::int64_t rows, Step&& step) {
  using One = std::integral_constant<int, 1>;
  using Two = std::integral_constant<int, 2>;
  const bool far = strip.step == 2;
  if constexpr (kMostRows<W> == 2) {
    if (rows == 2) return far ? step(Two(), Two()) : step(One(), Two());
  }
  far ? step(Two(), One()) : step(One(), One());
}

template <int W>
void correlate3x3(const Strip& strip, std::int64_t rows, const float* filters, const Epilogue& epilogue, Channels channels,
                  float* y) {
  with_constants<W>(strip, rows, [&](auto stride, auto high) {
    for_each_group(strip.count, [&](std::int64_t first, auto outputs) {
      correlate_tile<W, stride, high, outputs>(strip, filters, epilogue, first, channels, y);
    });
  });
}

template <int W>
void add_filter_grad3x3(const Strip& strip, std::int64_t rows, const float* grad_y, Channels channels, float* sums) {
  with_constants<W>(strip, rows, [&](auto stride, auto high) {
    for_each_group(strip.count, [&](std::int64_t first, auto outputs) {
      add_tile<W, stride, high, outputs>(strip, grad_y, first, channels, sums);
    });
  });
}

}  // namespace
}  // namespace tessera::cpu::depthwise
