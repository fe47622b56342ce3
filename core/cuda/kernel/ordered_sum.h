// Sums of the rows that share a number, in order: the gradient of a lookup, without atomics on floating-point numbers.
#pragma once

#include "core/tensor.h"

namespace tessera::cuda {

// target [v, d]: row r = the sum of source [n, d]'s rows i with numbers[i] == r, added in order of i in the compute type; 0 where
// there is none. numbers i64 [n]; those outside of 0..v-1 add to nothing. f32, f64, bf16 or f16; contiguous. A stable radix sort
// of the numbers finds each row's terms. Throws ShapeError when n or v reaches 2^31.
void ordered_row_sums(const char* operation, const Tensor& numbers, const Tensor& source, const Tensor& target);

}  // namespace tessera::cuda
