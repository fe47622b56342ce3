// What follows a product where the library does not do it with the product, and the sums of a bias's gradient.
#pragma once

#include "core/tensor.h"

namespace tessera::cuda {

// y [..., n] = y + bias + residual, then max(y, 0) with `relu`; NaN stays NaN. One pass; computed in f32 (f64 for f64) and
// rounded once. bias [n] of y's dtype or f32, residual of y's shape and dtype; each may be undefined.
void finish_product(const Tensor& y, const Tensor& bias, const Tensor& residual, bool relu);

// sums [n] = x [rows, n] added up over the rows, in double and in an order that depends on the sizes only. sums is f64 beside x
// of f64, otherwise f32 or of x's dtype.
void column_sums(const Tensor& x, const Tensor& sums);

}  // namespace tessera::cuda
