// A product of two matrices of which one is laid out in panels and the other is read where it lies, whatever instruction set
// the kernels are built for.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/support/rounding.h"

namespace tessera::cpu::panels {

inline constexpr std::int64_t kPanel = 64;  // columns of a panel: with a few rows their sums fill the registers
inline constexpr std::int64_t kDepth = 384;  // at most, of a block: a panel of it is a tenth of a second-level cache
inline constexpr std::int64_t kRows = 96;  // that take turns with the panels; a multiple of the rows of sums in registers
inline constexpr std::int64_t kTurned = 512;  // columns that turned sums have room for

// A matrix [k][columns], cut along k into blocks of `depth` rows and each of these into panels: [blocks][panels][depth][kPanel],
// where the last block may have fewer rows. Columns behind the last one are zeros.
struct Panels {
  const float* at;
  std::int64_t columns, k;

  std::int64_t count() const { return ceil_div(columns, kPanel); }
  std::int64_t size() const { return count() * k * kPanel; }
  std::int64_t depth() const { return ceil_div(k, ceil_div(k, kDepth)); }
  // Calls body(first row, rows) for the blocks.
  template <class Body>
  void for_each_block(const Body& body) const {
    for (std::int64_t first = 0; first < k; first += depth()) body(first, std::min(depth(), k - first));
  }
  std::int64_t offset(std::int64_t first, std::int64_t rows, std::int64_t panel) const {
    return first * count() * kPanel + panel * rows * kPanel;
  }
};

// y [rows][out] = x w^T + bias, with x [rows][k] in place and w^T [k][out] in panels.
struct Product {
  const float* x;
  Panels w;
  const float* bias;  // [out], or null
  float* y;
};

// The same with w [out][k] in place and x^T [k][rows] in panels.
struct TurnedProduct {
  Panels x;
  const float* w;
  std::int64_t out;
  const float* bias;  // [out], or null
  float* y;
};

struct Kernels {
  // One panel from rows [columns][k], which are turned, or from [k][columns].
  void (*turn)(const float* rows, const Panels& to, std::int64_t panel, float* at);
  void (*copy)(const float* rows, const Panels& to, std::int64_t panel, float* at);
  // Rows [begin, end) of y, and columns [begin, end) of y with scratch [kRows][kTurned].
  void (*multiply)(const Product& product, std::int64_t begin, std::int64_t end);
  void (*multiply_turned)(const TurnedProduct& product, std::int64_t begin, std::int64_t end, float* sums);
};

extern const Kernels kAvx2Kernels;
extern const Kernels kAvx512Kernels;

}  // namespace tessera::cpu::panels
