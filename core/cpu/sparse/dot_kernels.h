// Sums over positions at kept elements (gradient.h): dot products of single rows.
// Included only by kernels.h; W, the lanes of a vector, tells the instances apart.
#pragma once

#include <cstdint>

#include "core/cpu/sparse/problem.h"
#include "core/cpu/vectors.h"

namespace tessera::cpu::sparse {
namespace {

// Even lanes of a, then of b, within each 128 bits; odd lanes with Next 1.
template <int W, int Next>
struct EvenLanes {
  static constexpr int at(int lane) { return lane / 4 * 4 + lane % 2 * 2 + (lane % 4 < 2 ? 0 : W) + Next; }
};
// Even 128 bits of a, then of b; odd ones with Next 1.
template <int W, int Next>
struct EvenQuarters {
  static constexpr int at(int lane) { return lane % (W / 2) / 4 * 8 + lane % (W / 2) % 4 + (lane < W / 2 ? 0 : W) + 4 * Next; }
};

// Sums of neighbouring lanes of a, then of b, within each 128 bits.
template <int W>
[[gnu::always_inline]] inline Vec<W> add_neighbours(const Vec<W>& a, const Vec<W>& b) {
  return shuffled<W, EvenLanes<W, 0>>(a, b) + shuffled<W, EvenLanes<W, 1>>(a, b);
}

// Sums of neighbouring 128 bits of a, then of b.
template <int W>
[[gnu::always_inline]] inline Vec<W> add_quarters(const Vec<W>& a, const Vec<W>& b) {
  return shuffled<W, EvenQuarters<W, 0>>(a, b) + shuffled<W, EvenQuarters<W, 1>>(a, b);
}

// Lane i is the sum of the lanes of v[i].
template <int W>
[[gnu::always_inline]] inline Vec<W> sums_of(const Vec<W>* v) {
  Vec<W> four[W / 4];
#pragma GCC unroll 4
  for (int i = 0; i < W / 4; ++i) {
    four[i] = add_neighbours<W>(add_neighbours<W>(v[4 * i], v[4 * i + 1]), add_neighbours<W>(v[4 * i + 2], v[4 * i + 3]));
  }
  if constexpr (W == 8)
    return add_quarters<W>(four[0], four[1]);
  else
    return add_quarters<W>(add_quarters<W>(four[0], four[1]), add_quarters<W>(four[2], four[3]));
}

template <int W>
[[gnu::always_inline]] inline void add_to(const Vec<W>& v, float* to) {
  store<W>(load<W>(to) + v, to);
}

// Dot products wait here, a vector each, until there are enough to add their lanes together.
inline constexpr int kWaiting = kMostDots;

template <int W, int N>
void dots_of_vectors(const Dots& dots, const float* y, std::int64_t y_pitch, const float* x, float* sums) {
  alignas(64) float ring[2 * kWaiting * W];
  constexpr std::int64_t kMask = 2 * kWaiting - 1;
  const std::int32_t* columns = dots.columns;
  std::int64_t next = 0, added = 0;
  const auto add = [&] {
    Vec<W> v[W];
#pragma GCC unroll 16
    for (int i = 0; i < W; ++i) v[i] = load<W>(ring + ((added & kMask) + i) * W);
    add_to<W>(sums_of<W>(v), sums + added);
    added += W;
  };
  for (std::int64_t r = 0; r < dots.row_count; ++r) {
    Vec<W> a[N];
    const float* const row = y + dots.rows[r].row * y_pitch;
#pragma GCC unroll 8
    for (int n = 0; n < N; ++n) a[n] = load<W>(row + n * W);
    for (const std::int32_t* const end = columns + dots.rows[r].count; columns != end; ++columns, ++next) {
      const float* const column = x + *columns;
      Vec<W> even = a[0] * load<W>(column), odd{};
      if constexpr (N > 1) odd = a[1] * load<W>(column + W);
#pragma GCC unroll 8
      for (int n = 2; n < N; ++n) (n % 2 == 0 ? even : odd) += a[n] * load<W>(column + n * W);
      store<W>(N > 1 ? even + odd : even, ring + (next & kMask) * W);
    }
    if (next - added >= kWaiting) {
#pragma GCC unroll 1
      for (int i = 0; i < kWaiting; i += W) add();
    }
  }
  for (; next % W != 0; ++next) store<W>(Vec<W>{}, ring + (next & kMask) * W);
  while (added < next) add();
}

template <int W>
void dots(const Dots& dots, const float* y, std::int64_t y_pitch, const float* x, std::int64_t width, float* sums) {
  std::int64_t p = 0;
  for (; p + 8 * W <= width; p += 8 * W) dots_of_vectors<W, 8>(dots, y + p, y_pitch, x + p, sums);
  switch ((width - p) / W) {
    case 1: return dots_of_vectors<W, 1>(dots, y + p, y_pitch, x + p, sums);
    case 2: return dots_of_vectors<W, 2>(dots, y + p, y_pitch, x + p, sums);
    case 3: return dots_of_vectors<W, 3>(dots, y + p, y_pitch, x + p, sums);
    case 4: return dots_of_vectors<W, 4>(dots, y + p, y_pitch, x + p, sums);
    case 5: return dots_of_vectors<W, 5>(dots, y + p, y_pitch, x + p, sums);
    case 6: return dots_of_vectors<W, 6>(dots, y + p, y_pitch, x + p, sums);
    case 7: return dots_of_vectors<W, 7>(dots, y + p, y_pitch, x + p, sums);
    default: return;
  }
}

}  // namespace
}  // namespace tessera::cpu::sparse
