// Included only by the files that build it for one instruction set each; W, the lanes of a vector, tells their instances apart.
#pragma once

#include "core/cpu/block_products.h"
#include "core/cpu/panels/problem.h"
#include "core/cpu/vectors.h"

namespace tessera::cpu::panels {
namespace {

static_assert(kTaskRows == kRowsAtOnce);

// The first `count` of W rows of length `pitch`, turned: element (i, c) goes to to[c * kPanel + i], zeros where there is no row.
template <int W>
void turn_rows(const float* rows, std::int64_t pitch, std::int64_t count, std::int64_t columns, float* to) {
  std::int64_t c = 0;
  for (; c + W <= columns; c += W) {
    Vec<W> v[W];
#pragma GCC unroll 16
    for (int r = 0; r < W; ++r) v[r] = r < count ? load<W>(rows + r * pitch + c) : Vec<W>{};
    transpose<W>(v);
#pragma GCC unroll 16
    for (int r = 0; r < W; ++r) store<W>(v[r], to + (c + r) * kPanel);
  }
  for (; c < columns; ++c) {
    for (std::int64_t r = 0; r < W; ++r) to[c * kPanel + r] = r < count ? rows[r * pitch + c] : 0.0F;
  }
}

template <int W>
void turn(const float* rows, const Panels& to, std::int64_t panel, float* at) {
  to.for_each_block([&](std::int64_t first, std::int64_t depth) {
    float* const block = at + to.offset(first, depth, panel);
    for (std::int64_t i = 0; i < kPanel; i += W) {
      const std::int64_t row = panel * kPanel + i;
      turn_rows<W>(rows + row * to.k + first, to.k, to.columns - row, depth, block + i);
    }
  });
}

template <int W>
void copy(const float* rows, const Panels& to, std::int64_t panel, float* at) {
  const std::int64_t column = panel * kPanel, columns = to.columns - column;
  to.for_each_block([&](std::int64_t first, std::int64_t depth) {
    float* block = at + to.offset(first, depth, panel);
    for (std::int64_t k = first; k < first + depth; ++k, block += kPanel) {
      const float* const row = rows + k * to.columns + column;
      for (std::int64_t i = 0; i < kPanel; i += W) {
        if (i + W <= columns) {
          store<W>(load<W>(row + i), block + i);
        } else {
          for (std::int64_t c = i; c < i + W; ++c) block[c] = c < columns ? row[c] : 0.0F;
        }
      }
    }
  });
}

// A block's part of the sums of a panel: the first one begins with the bias.
template <int W>
void add_block(const Product& p, std::int64_t row, std::int64_t rows, std::int64_t first, std::int64_t depth,
               std::int64_t panel) {
  const std::int64_t out = p.w.columns, column = panel * kPanel, columns = out - column < kPanel ? out - column : kPanel;
  const Extents extents{.rows = rows, .columns = (columns + W - 1) / W * W, .depth = depth};
  const Scalars<float> x{.at = p.x + row * p.w.k + first, .row = p.w.k, .step = 1};
  const float* const w = p.w.at + p.w.offset(first, depth, panel);
  float* const y = p.y + row * out + column;
  const Start start = first > 0 ? Start{y, out} : Start{p.bias, 0}.from(0, column);
  if (columns == extents.columns) return multiply<W, true>(extents, x, w, kPanel, start, y, out);
  float sums[kRows * kPanel]{}, bias[kPanel]{};  // whole vectors, where y has none
  const auto copy_rows = [&](const float* from, std::int64_t pitch, std::int64_t count, float* to, std::int64_t to_pitch) {
    for (std::int64_t r = 0; r < count; ++r) {
      for (std::int64_t c = 0; c < columns; ++c) to[r * to_pitch + c] = from[r * pitch + c];
    }
  };
  if (first > 0) copy_rows(y, out, rows, sums, kPanel);
  if (first == 0 && p.bias != nullptr) copy_rows(p.bias + column, 0, 1, bias, 0);
  multiply<W>(extents, x, w, kPanel, first > 0 ? Start{sums, kPanel} : Start{bias, 0}, sums, kPanel);
  copy_rows(sums, kPanel, rows, y, out);
}

// Panels stay in the second-level cache while rows go by.
template <int W>
void multiply_rows(const Product& p, std::int64_t begin, std::int64_t end) {
  for (std::int64_t row = begin; row < end; row += kRows) {
    const std::int64_t rows = end - row < kRows ? end - row : kRows;
    p.w.for_each_block([&](std::int64_t first, std::int64_t depth) {
      for (std::int64_t panel = 0; panel < p.w.count(); ++panel) add_block<W>(p, row, rows, first, depth, panel);
    });
  }
}

// Sums [outs][kTurned] of `columns` columns become rows of y, from element `out` on.
template <int W>
void store_turned(const TurnedProduct& p, const float* sums, std::int64_t out, std::int64_t outs, std::int64_t row,
                  std::int64_t columns) {
  std::int64_t o = 0;
  for (; o + W <= outs; o += W) {
    const Vec<W> bias = p.bias != nullptr ? load<W>(p.bias + out + o) : Vec<W>{};
    for (std::int64_t i = 0; i < columns; i += W) {
      Vec<W> v[W];
#pragma GCC unroll 16
      for (int r = 0; r < W; ++r) {
        v[r] = load<W>(sums + (o + r) * kTurned + i);
        __builtin_prefetch(p.y + (row + i + W + r) * p.out + out + o, 1);  // of the next rows
      }
      transpose<W>(v);
#pragma GCC unroll 16
      for (int r = 0; r < W; ++r) {
        if (i + r < columns) store<W>(v[r] + bias, p.y + (row + i + r) * p.out + out + o);
      }
    }
  }
  for (; o < outs; ++o) {
    const float bias = p.bias != nullptr ? p.bias[out + o] : 0.0F;
    for (std::int64_t i = 0; i < columns; ++i) p.y[(row + i) * p.out + out + o] = sums[o * kTurned + i] + bias;
  }
}

// A few rows of w stay in the first-level cache while panels go by.
template <int W>
void multiply_turned(const TurnedProduct& p, std::int64_t begin, std::int64_t end, float* sums) {
  const std::int64_t rows = p.x.columns;
  for (std::int64_t out = begin; out < end; out += kRows) {
    const std::int64_t outs = end - out < kRows ? end - out : kRows;
    for (std::int64_t row = 0; row < rows; row += kTurned) {
      const std::int64_t columns = rows - row < kTurned ? rows - row : kTurned;
      p.x.for_each_block([&](std::int64_t first, std::int64_t depth) {
        for (std::int64_t o = 0; o < outs; o += kRowsAtOnce) {
          const Scalars<float> w{.at = p.w + (out + o) * p.x.k + first, .row = p.x.k, .step = 1};
          for (std::int64_t c = 0; c < columns; c += kPanel) {
            const std::int64_t left = (columns - c + W - 1) / W * W;
            const Extents extents{.rows = outs - o < kRowsAtOnce ? outs - o : kRowsAtOnce,
                                  .columns = left < kPanel ? left : kPanel,
                                  .depth = depth};
            float* const to = sums + o * kTurned + c;
            multiply<W, true>(extents, w, p.x.at + p.x.offset(first, depth, (row + c) / kPanel), kPanel,
                              first > 0 ? Start{to, kTurned} : Start{}, to, kTurned);
          }
        }
      });
      store_turned<W>(p, sums, out, outs, row, columns);
    }
  }
}

template <int W>
constexpr Kernels kernels_of() {
  return {.turn = turn<W>, .copy = copy<W>, .multiply = multiply_rows<W>, .multiply_turned = panels::multiply_turned<W>};
}

}  // namespace
}  // namespace tessera::cpu::panels
