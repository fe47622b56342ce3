// The arguments of the sparse kernels, the same for every instruction set. A sparse matrix [rows, columns] is multiplied by
// panels: kPanel right-hand sides that lie side by side, [columns][kPanel], so that each kept element meets whole vectors.
#pragma once

#include <cstdint>

namespace tessera::cpu::sparse {

inline constexpr std::int64_t kPanel = 64;  // right-hand sides of a product
inline constexpr std::int64_t kSumPanel = 128;  // most positions that a gradient of the kept elements sums over at once
inline constexpr std::int64_t kTileLanes = 16;  // rows of a gradient's tile come in whole vectors
inline constexpr std::int64_t kMostTileVectors = 4;
inline constexpr std::int64_t kMostDots = 32;  // of a row that follow one another
inline constexpr std::int64_t kStripLanes = 16;  // strips of images that lie side by side (strips.h)
inline constexpr int kMostRows = 6;  // of a piece: with a vector of each sum they fill the registers

// Rows that have the same columns, in whole or in part: a small dense matrix, whose weights lie [columns][rows].
struct Piece {
  std::int32_t rows;  // first of `row_list`
  std::int32_t row_count;  // 1 to kMostRows
  std::int32_t columns;  // first of `column_list`
  std::int32_t column_count;
  std::int64_t weights;  // first of the packed weights
};

struct Lists {
  const Piece* pieces;
  std::int64_t count;
  const std::int32_t* row_list;
  const std::int32_t* column_list;  // where columns lie in x, in floats
  std::int64_t first_row = 0;  // of a product's y, which may be a part of the result
};

// A row, and how many columns it is multiplied with: up to kMostDots.
struct DotRow {
  std::int32_t row, count;
};

struct Dots {
  const DotRow* rows;
  std::int64_t row_count;
  const std::int32_t* columns;  // of all rows one after another: floats behind the first of x
};

inline constexpr std::int64_t kSpill = 15;  // floats behind what is copied that a whole vector may overwrite

// Positions of a panel that are neighbours in a row of the image: [channels] rows of floats.
struct Segment {
  const float* from;
  std::int32_t to;  // first position
  std::int32_t length;
};

// Built for one instruction set.
struct Kernels {
  // y [rows from lists.first_row on][kPanel] += A x [columns][kPanel], in the first `width` positions rounded up to whole
  // vectors.
  void (*product)(const Lists& lists, const float* weights, const float* x, std::int64_t width, float* y);
  // Likewise of strips: each kStripLanes positions read `stride` floats behind those before them.
  void (*strip_product)(const Lists& lists, const float* weights, const float* x, std::int64_t stride, std::int64_t width,
                        float* y);
  // sums[i] += the dot product of a row of y and a column of x over `width` positions, whole vectors of 16; of zeros up to a
  // whole vector of sums.
  void (*dots)(const Dots& dots, const float* y, std::int64_t y_pitch, const float* x, std::int64_t width, float* sums);
  // sums [count][16 vectors] += x y: columns of x, each `width` positions behind columns[i]; y [width][16 vectors].
  void (*tile)(const std::int32_t* columns, std::int64_t count, const float* y, std::int64_t vectors, const float* x,
               std::int64_t width, float* sums);
  // to [channels][pitch] from `positions` rows of channels; zeros behind them up to a whole vector.
  void (*pack)(const float* const* rows, std::int64_t positions, std::int64_t channels, float* to, std::int64_t pitch);
  // to[c][segment.to ...] = segment.from[c * from_pitch ...] for every segment, in ascending order of channels. Overwrites up to
  // kSpill floats behind each row.
  void (*copy)(const Segment* segments, std::int64_t count, std::int64_t channels, std::int64_t from_pitch, float* to,
               std::int64_t to_pitch);
  // rows[p][0 .. channels) = from [channels][pitch], clamped from below at 0 with `relu`.
  void (*unpack)(const float* from, std::int64_t pitch, std::int64_t positions, std::int64_t channels, bool relu,
                 float* const* rows);
};

extern const Kernels kAvx2Kernels;
extern const Kernels kAvx512Kernels;

}  // namespace tessera::cpu::sparse
