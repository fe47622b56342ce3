// The arguments of the kernels that multiply a matrix laid out in panels with one that is read where it lies. They are the same
// for every instruction set. Functions here are always inline: of several copies with external linkage the linker would keep
// one, perhaps built for instructions that the processor lacks.
#pragma once

#include <cstdint>

namespace tessera::cpu::panels {

inline constexpr std::int64_t kPanel = 64;  // columns of a panel: with kTaskRows rows their sums fill the registers
inline constexpr std::int64_t kDepth = 768;  // the most rows of a block: a panel of it is a fifth of a second-level cache
inline constexpr std::int64_t kTaskRows = 6;  // a thread computes a multiple of it
inline constexpr std::int64_t kTaskOuts = 48;  // the same of turned products: whole vectors, and a multiple of kTaskRows
inline constexpr std::int64_t kRows = 96;  // of y that one panel is multiplied with before the next
inline constexpr std::int64_t kTurned = 256;  // columns that turned sums have room for
static_assert(kTaskOuts % kTaskRows == 0 && kTaskOuts % 16 == 0 && kRows % kTaskOuts == 0);

// A matrix [k][columns], cut along k into blocks of `depth` rows and each of these into panels: [blocks][panels][depth][kPanel],
// where the last block may have fewer rows. Columns behind the last one are zeros.
struct Panels {
  const float* at;
  std::int64_t columns, k;

  [[gnu::always_inline]] std::int64_t count() const { return (columns + kPanel - 1) / kPanel; }
  [[gnu::always_inline]] std::int64_t size() const { return count() * k * kPanel; }
  [[gnu::always_inline]] std::int64_t depth() const {  // even shares of at most kDepth
    const std::int64_t blocks = (k + kDepth - 1) / kDepth;
    return (k + blocks - 1) / blocks;
  }
  // Calls body(first row, rows) for the blocks.
  template <class Body>
  [[gnu::always_inline]] void for_each_block(const Body& body) const {
    for (std::int64_t first = 0; first < k; first += depth()) body(first, k - first < depth() ? k - first : depth());
  }
  // Offset of a panel in the block of `rows` rows that begins at row `first`.
  [[gnu::always_inline]] std::int64_t offset(std::int64_t first, std::int64_t rows, std::int64_t panel) const {
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
  // Writes one panel of every block, from a matrix [columns][k].
  void (*turn)(const float* rows, const Panels& to, std::int64_t panel, float* at);
  // The same from a matrix [k][columns].
  void (*copy)(const float* rows, const Panels& to, std::int64_t panel, float* at);
  // Rows [begin, end) of y.
  void (*multiply)(const Product& product, std::int64_t begin, std::int64_t end);
  // Columns [begin, end) of y. `sums` is scratch [kRows][kTurned].
  void (*multiply_turned)(const TurnedProduct& product, std::int64_t begin, std::int64_t end, float* sums);
};

extern const Kernels kAvx2Kernels;
extern const Kernels kAvx512Kernels;

}  // namespace tessera::cpu::panels
