// Rows of one head as attention on the CPU reads and writes them: widened to f32, padded, fetched ahead.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "core/cpu/channel_blocks.h"
#include "core/tensor.h"

namespace tessera::cpu::attention {

// Rows of one head of a sequence, `width` elements each.
template <class T>
struct Rows {
  T* at;
  std::int64_t stride;
  T* row(std::int64_t position) const { return at + position * stride; }
};

template <class T>
Rows<T> rows_of(const Tensor& x, std::int64_t batch, std::int64_t head) {
  return {x.data<T>() + batch * x.strides()[0] + head * x.strides()[2], x.strides()[1]};
}

inline constexpr int kWidth = 8;  // of vectors, in which rows are widened and rounded

// Rows lie a whole position apart, too far for the processor to fetch them by itself.
inline constexpr std::int64_t kRowsAhead = 12;

template <class T>
void fetch(const T* row, std::int64_t width) {
  constexpr auto kLine = static_cast<std::int64_t>(64 / sizeof(T));
  for (std::int64_t c = 0; c < width; c += kLine) __builtin_prefetch(row + c);
}

// to [count][pitch] from rows, zeros behind `width`.
template <class T>
void copy_rows(const Rows<T>& from, std::int64_t first, std::int64_t count, std::int64_t width, float scale, float* to,
               std::int64_t pitch) {
  for (std::int64_t i = 0; i < count; ++i) {
    const T* const row = from.row(first + i);
    if (i + kRowsAhead < count) fetch(from.row(first + i + kRowsAhead), width);
    std::int64_t c = 0;
    for (; c + kWidth <= width; c += kWidth) {
      store_lanes<float, kWidth>(scale * load_lanes<float, kWidth>(row + c), to + i * pitch + c);
    }
    for (; c < width; ++c) to[i * pitch + c] = scale * widen(row[c]);
    std::fill(to + i * pitch + width, to + (i + 1) * pitch, 0.0F);
  }
}

// The sum of the products of `width` elements. The last ones, which fill no vector, are added in order and with one rounding
// each, as a tile's products are: in a narrow head a query that sees only itself then has no gradient, to the last bit.
template <class T>
float dot(const float* a, const T* b, std::int64_t width) {
  Lanes<float, kWidth>::type sums{};
  std::int64_t c = 0;
  for (; c + kWidth <= width; c += kWidth) sums += load_lanes<float, kWidth>(a + c) * load_lanes<float, kWidth>(b + c);
  Lanes<float, kWidth / 2>::type halves[2];
  std::memcpy(halves, &sums, sizeof sums);
  const auto four = halves[0] + halves[1];
  float sum = (four[0] + four[2]) + (four[1] + four[3]);
  for (; c < width; ++c) sum = std::fma(a[c], widen(b[c]), sum);
  return sum;
}

template <class T>
void write_rows(const float* from, std::int64_t pitch, float scale, std::int64_t first, std::int64_t count, std::int64_t width,
                const Rows<T>& to) {
  for (std::int64_t i = 0; i < count; ++i) {
    T* const row = to.row(first + i);
    std::int64_t c = 0;
    for (; c + kWidth <= width; c += kWidth) {
      store_lanes<float, kWidth>(scale * load_lanes<float, kWidth>(from + i * pitch + c), row + c);
    }
    for (; c < width; ++c) row[c] = narrow<T>(scale * from[i * pitch + c]);
  }
}

}  // namespace tessera::cpu::attention
