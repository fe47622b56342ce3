// Convolutions with sparse weights over NHWC images on a GPU, a linear layer among them: channels are turned into rows of
// positions, multiplied there, and turned back. Every element is summed in the same order at every run, on every chip.
#pragma once

#include "core/cpu/sparse/window.h"
#include "core/cuda/sparse/matrix.h"

namespace tessera::cuda::sparse {

// How a matrix is walked: row by row, or, where some keep the same columns, in pieces of such rows, which are multiplied on
// tensor cores in half types; then values are rounded to x's dtype.
enum class Walk { rows, pieces };

// y [positions, matrix.rows] = A x + bias, rounded once; with `relu` negative sums become 0 and NaN stays. x of the window's
// images, as rows of channels; values and bias of parameter_dtype(x.dtype()), the bias may be undefined. f32, f64, bf16, f16.
void multiply(const Matrix& matrix, Walk walk, const Tensor& values, const cpu::sparse::Window& window, const Tensor& x,
              const Tensor& bias, bool relu, const Tensor& y);

// grad [count]: the sums over positions of grad_y x at the kept elements. The matrix is a row_matrix().
void gradient(const Matrix& matrix, Walk walk, const cpu::sparse::Window& window, const Tensor& x, const Tensor& grad_y,
              const Tensor& grad);

// Whether the kernels can count the pixels.
bool fits(const cpu::sparse::Window& window);

}  // namespace tessera::cuda::sparse
