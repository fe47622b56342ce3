// Matrix product of the last two dimensions: y = op(a) op(b), with op the transpose where asked.
// a [..., m, k], b [..., k, n] -> y [..., m, n] (stored as [..., k, m] and [..., n, k] when transposed). Leading dimensions
// broadcast. Saves a and b; grad_a = grad_y op(b)^T and grad_b = op(a)^T grad_y, summed over broadcast dimensions.
// Throws ShapeError on ranks below 2 and on inner or leading dimensions that do not fit.
#pragma once

#include "core/autograd/var.h"

namespace tessera {

struct MatmulOptions {
  bool transpose_a = false;
  bool transpose_b = false;
};

Var matmul(const Var& a, const Var& b, const MatmulOptions& options = {});

// a, b and y [batch, rows, columns], contiguous, of one dtype; or each bf16 or f32, and a and b are multiplied as bf16. Writes
// every element of y, zeros when k is 0.
namespace cpu {
void matmul(const Tensor& a, const Tensor& b, const Tensor& y, const MatmulOptions& options);
}
namespace cuda {
void matmul(const Tensor& a, const Tensor& b, const Tensor& y, const MatmulOptions& options);
}

}  // namespace tessera
