// Sums, means and maxima over axes, and the sums that undo broadcasting.
#pragma once

#include <initializer_list>
#include <span>

#include "core/autograd/var.h"

namespace tessera {

// y = x reduced over `axes` (negative ones count from the end; an empty list reduces nothing). Reduced axes are dropped, or kept
// with size 1. Sums run in double and in a fixed order for a given thread count. sum and mean save shapes only: grad_x = g, or
// g / count, repeated along the axes. max saves one index per result; the gradient goes to the first maximum, and NaN counts as
// the maximum. Throws ShapeError on an axis out of range or given twice, and for mean and max over no elements.
Var sum(const Var& x, std::span<const int> axes, bool keep_dims = false);
Var mean(const Var& x, std::span<const int> axes, bool keep_dims = false);
Var max(const Var& x, std::span<const int> axes, bool keep_dims = false);

inline Var sum(const Var& x, std::initializer_list<int> axes, bool keep_dims = false) {
  return sum(x, std::span(axes.begin(), axes.size()), keep_dims);
}
inline Var mean(const Var& x, std::initializer_list<int> axes, bool keep_dims = false) {
  return mean(x, std::span(axes.begin(), axes.size()), keep_dims);
}
inline Var max(const Var& x, std::initializer_list<int> axes, bool keep_dims = false) {
  return max(x, std::span(axes.begin(), axes.size()), keep_dims);
}

// Over everything, to a scalar.
Var sum(const Var& x);
Var mean(const Var& x);

// Outside of any graph: x, a * b or a / b summed over the axes along which `shape` was broadcast to their shape. No product
// or quotient is stored on the way. sum_to returns x itself when there is nothing to do.
Tensor sum_to(const Tensor& x, const Shape& shape, double scale = 1.0);
Tensor sum_product_to(const Tensor& a, const Tensor& b, const Shape& shape);
Tensor sum_quotient_to(const Tensor& a, const Tensor& b, const Shape& shape);

// Kernels. y broadcasts to the shape of x (or of a, to which b broadcasts). max_forward: x [rows, n] contiguous -> y [rows] and
// index i64 [rows]; max_backward writes all of grad_x [rows, n].
namespace cpu {
void sum_forward(const Tensor& x, double scale, const Tensor& y);
void sum_product(const Tensor& a, const Tensor& b, const Tensor& y);
void sum_quotient(const Tensor& a, const Tensor& b, const Tensor& y);
void max_forward(const Tensor& x, const Tensor& y, const Tensor& index);
void max_backward(const Tensor& grad_y, const Tensor& index, const Tensor& grad_x);
}  // namespace cpu
namespace cuda {
void sum_forward(const Tensor& x, double scale, const Tensor& y);
void sum_product(const Tensor& a, const Tensor& b, const Tensor& y);
void sum_quotient(const Tensor& a, const Tensor& b, const Tensor& y);
void max_forward(const Tensor& x, const Tensor& y, const Tensor& index);
void max_backward(const Tensor& grad_y, const Tensor& index, const Tensor& grad_x);
}  // namespace cuda

}  // namespace tessera
