// The n-mode product of a tensor with a matrix (Kolda & Bader, SIAM Review 2009, section 2.5).
#pragma once

#include "core/tensor.h"

namespace tessera::linalg {

// tensor [..., n, ...] x_mode matrix [r, n] -> [..., r, ...] with y_(mode) = matrix * x_(mode). Both f32 or f64 and on one
// device, computed in double, returned in the tensor's dtype. No gradient. Throws ShapeError when the matrix's columns differ
// from the mode's size.
Tensor mode_product(const Tensor& tensor, const Tensor& matrix, int mode);

}  // namespace tessera::linalg
