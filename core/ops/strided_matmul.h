// Products of matrices that lie in tensors with strides. A kernel alone: no graph, no gradient.
#pragma once

#include "core/strided_product.h"

namespace tessera {

// All sizes are positive; elements are f32 or f64. Each of a and b has a row or column stride of 1, and y a column stride of 1;
// of f64 on the CPU they may be any. A stride of a dimension of size 1 does not matter. No two elements of y share a place.
// Writes every one.
namespace cpu {
// Sums are those of one matrix product, f32 by oneDNN and f64 by the reference loops.
void strided_matmul(const StridedProduct& product, const StridedOperands& operands);
}  // namespace cpu
namespace cuda {
// Calls cuBLASLt. f32 is multiplied in f32 unless tf32_products().
void strided_matmul(const StridedProduct& product, const StridedOperands& operands);
}  // namespace cuda

}  // namespace tessera
