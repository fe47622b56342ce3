// The arguments of the sparse kernels. Positions, the pixels of the result or the rows of a linear layer, lie side by side: a
// panel holds each channel as a row of all positions, so that every kept element multiplies whole vectors.
#pragma once

#include <cstdint>

#include "core/cuda/sparse/matrix.h"

namespace tessera::cuda::sparse {

inline constexpr int kLanes = 8;  // threads of a subwarp, which shares a row
inline constexpr int kSubwarps = 16;  // of a block
inline constexpr int kThreads = kLanes * kSubwarps;
// Rows of panels are a multiple of this long: whole accesses of 16 bytes, and whole strips of the widest kind.
inline constexpr std::int64_t kPanelStep = 64;

struct Elements {
  const std::int32_t* offsets;  // [rows + 1]
  const std::int32_t* indices;  // [count]
  std::int32_t width;  // columns of a tap
};

// Which pixel of the source a position reads at a tap. Those that read none read the pixel behind the last, which is zero.
struct Sources {
  const std::int32_t* pixels;  // [taps][pitch]; null: each position reads the pixel of its own number
  std::int64_t pitch;
};

// y [rows][y_pitch] = A x [channels][x_pitch] + bias, clamped from below at 0 with `relu`.
template <class T, class Number>
struct ProductProblem {
  Elements elements;
  const Number* values;  // [count]
  Sources sources;
  const T* x;
  std::int64_t x_pitch;
  const Number* bias;  // or null
  bool relu;
  T* y;
  std::int64_t y_pitch;
};

// Some rows of it.
template <class T, class Number>
struct RowProblem : ProductProblem<T, Number> {
  const std::int32_t* order;  // [row_count]
  std::int32_t row_count;
};

// The rows of pieces.
template <class T, class Number>
struct PieceProblem : ProductProblem<T, Number> {
  const std::int32_t* pieces;  // [piece_count][kPieceRows]
  unsigned piece_count;
};

// sums [splits][count]: of y x at the kept elements, over the positions of each split.
template <class T, class Number>
struct GradientProblem {
  Elements elements;
  Sources sources;
  const T* x;
  std::int64_t x_pitch;
  const T* y;
  std::int64_t y_pitch;
  std::int64_t count;
  Number* sums;
};

// The elements of chunks of rows; strips of positions.
template <class T, class Number>
struct DotProblem : GradientProblem<T, Number> {
  const std::int32_t* chunks;  // [chunk_count][2]
  std::int32_t chunk_count;
  std::int64_t strips, strips_of_split;
};

// The elements of pieces; steps are of kPanelStep positions.
template <class T, class Number>
struct PieceDotProblem : GradientProblem<T, Number> {
  const std::int32_t* pieces;
  const std::int32_t* tiles;  // [tile_count][2]
  unsigned tile_count;
  std::int64_t steps, steps_of_split;
};

}  // namespace tessera::cuda::sparse
