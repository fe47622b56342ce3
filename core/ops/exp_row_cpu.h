// What softmax, dense and sparse, and cross-entropy share of a row.
#pragma once

#include <cstdint>

#include "core/cpu/rows/problem.h"

namespace tessera::cpu {

// The largest of n > 0 elements, for float and double; any of them where one is NaN.
template <class T>
T largest(const T* x, std::int64_t n);

// y = exp(x - top) of n > 0 elements. y may be x. Floats have rows::Kernels::exp_sum, which stores no exponentials.
rows::ExpSum<double> exp_row(const double* x, std::int64_t n, double* y);

// Softmax of n > 0 elements, and its gradient where they were scaled first: scale * y * (g - sum(g * y)); for float and double. y
// may be x. A NaN fills its row: it enters the sum, and the sum divides every element.
template <class T>
void softmax_row(const T* x, std::int64_t n, rows::Stores stores, T* y);
template <class T>
void softmax_backward_row(const T* y, const T* g, std::int64_t n, T scale, rows::Stores stores, T* grad_x);

}  // namespace tessera::cpu
