// Matricisation of a tensor along one mode (Kolda & Bader, SIAM Review 2009, section 2.4; here the remaining modes keep their
// order and the last one runs fastest, as row-major storage does).
#pragma once

#include "core/tensor.h"

namespace tessera::linalg {

// tensor [n_0, ..., n_d-1] -> [n_mode, product of the other sizes]. Any dtype. A view where the strides allow it. Negative
// modes count from the end; throws ShapeError when out of range.
Tensor unfold(const Tensor& tensor, int mode);

// The inverse: matrix [shape[mode], rest] -> shape, contiguous. Throws ShapeError when the matrix does not unfold that shape.
Tensor fold(const Tensor& matrix, int mode, const Shape& shape);

}  // namespace tessera::linalg
