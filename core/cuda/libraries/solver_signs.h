// Makes factorisations unique, as core/linalg promises, and brings them to our layout.
#pragma once

#include "core/tensor.h"

namespace tessera::cuda {

// For each column of u [..., m, k], f64 contiguous: 1 or -1 [..., k], the sign that makes the entry of largest magnitude
// positive; of equal ones the first.
Tensor column_signs(const Tensor& u);

// For a triangular r [k, n], f64 contiguous: 1 or -1 [k], the signs that make its diagonal positive or zero.
Tensor diagonal_signs(const Tensor& r);

// The upper triangle [k, n] of what QR leaves in columns [n, m], whose first k entries count; zeros below.
Tensor upper_triangle(const Tensor& columns, std::int64_t k);

// x [..., n, m], f64 contiguous, in the opposite order along n.
Tensor reversed_rows(const Tensor& x);

}  // namespace tessera::cuda
