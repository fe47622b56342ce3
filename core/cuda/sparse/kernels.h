// Starts of the sparse kernels. Panels are of the elements' dtype, values, bias and sums of Compute<T>'s.
#pragma once

#include "core/compute_type.h"
#include "core/cpu/sparse/window.h"
#include "core/cuda/sparse/problem.h"

namespace tessera::cuda::sparse {

// x [channels, pitch] and y [rows, pitch], with pitches as in problem.h. `pixels` i32 [taps, y's pitch], undefined where each
// position reads the pixel of its own number.
struct Panels {
  Tensor x, y, pixels;
};

inline Elements elements_of(const Matrix& matrix) {
  return {matrix.offsets.data<std::int32_t>(), matrix.indices.data<std::int32_t>(), static_cast<std::int32_t>(matrix.width)};
}
inline Sources sources_of(const Panels& panels) {
  return {panels.pixels.defined() ? panels.pixels.data<std::int32_t>() : nullptr, panels.y.dim(1)};
}

template <class T>
ProductProblem<T, Compute<T>> product_problem(const Matrix& matrix, const Tensor& values, const Panels& panels,
                                              const Tensor& bias, bool relu) {
  return {.elements = elements_of(matrix),
          .values = values.data<Compute<T>>(),
          .sources = sources_of(panels),
          .x = panels.x.data<T>(),
          .x_pitch = panels.x.dim(1),
          .bias = bias.defined() ? bias.data<Compute<T>>() : nullptr,
          .relu = relu,
          .y = panels.y.data<T>(),
          .y_pitch = panels.y.dim(1)};
}

template <class T>
GradientProblem<T, Compute<T>> gradient_problem(const Matrix& matrix, const Panels& panels, const Tensor& sums) {
  return {.elements = elements_of(matrix),
          .sources = sources_of(panels),
          .x = panels.x.data<T>(),
          .x_pitch = panels.x.dim(1),
          .y = panels.y.data<T>(),
          .y_pitch = panels.y.dim(1),
          .count = matrix.count,
          .sums = sums.data<Compute<T>>()};
}

// `rows` of the result: a subwarp for each and strip of positions. `values` are in the matrix's order; the bias may be undefined.
void multiply_rows(const Matrix& matrix, const Matrix::Rows& rows, const Tensor& values, const Panels& panels, const Tensor& bias,
                   bool relu);
// The other rows, on tensor cores in half types.
void multiply_pieces(const Matrix& matrix, const Tensor& values, const Panels& panels, const Tensor& bias, bool relu);

// sums [splits, count], in the matrix's order, at the elements of `rows`: a subwarp for each chunk of them and share of the
// positions, which is steps_of_split * kPanelStep.
void sum_dots(const Matrix& matrix, const Matrix::Rows& rows, const Panels& panels, std::int64_t steps_of_split,
              const Tensor& sums);
// At the other elements, on tensor cores in half types.
void sum_pieces(const Matrix& matrix, const Panels& panels, std::int64_t steps_of_split, const Tensor& sums);

// For each tap and position the pixel that it reads; the number of all pixels where it reads none, and behind the last position.
void find_pixels(const cpu::sparse::Window& window, const Tensor& pixels);

// to[i] = values[from[i]].
void permute_values(const Tensor& values, const Tensor& from, const Tensor& to);

// to [count] = partial [splits, count], summed in their order.
void sum_splits(const Tensor& partial, const Tensor& to);

}  // namespace tessera::cuda::sparse
