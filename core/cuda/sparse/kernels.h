// Starts of the sparse kernels. Panels are of the elements' dtype, values, bias and sums of Compute<T>'s.
#pragma once

#include "core/cpu/sparse/window.h"
#include "core/cuda/sparse/matrix.h"

namespace tessera::cuda::sparse {

// x [channels, pitch] and y [rows, pitch], with pitches as in problem.h. `pixels` i32 [taps, y's pitch], undefined where each
// position reads the pixel of its own number.
struct Panels {
  Tensor x, y, pixels;
};

// A subwarp for each row and strip of positions. `values` are in the matrix's order; the bias may be undefined.
void multiply_rows(const Matrix& matrix, const Tensor& values, const Panels& panels, const Tensor& bias, bool relu);

// sums [count], in the matrix's order: a subwarp for each chunk of kept elements and share of the positions.
void sum_dots(const Matrix& matrix, const Panels& panels, const Tensor& sums);

// For each tap and position the pixel that it reads; the number of all pixels where it reads none, and behind the last position.
void find_pixels(const cpu::sparse::Window& window, const Tensor& pixels);

// to[i] = values[from[i]].
void permute_values(const Tensor& values, const Tensor& from, const Tensor& to);

// to [count] = partial [splits, count], summed in their order.
void sum_splits(const Tensor& partial, const Tensor& to);

}  // namespace tessera::cuda::sparse
