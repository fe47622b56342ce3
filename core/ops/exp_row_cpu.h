// What softmax, dense and sparse, and cross-entropy share of a row.
#pragma once

#include <cstdint>

#include "core/cpu/rows/problem.h"

namespace tessera::cpu {

// The largest of n > 0 elements, for float and double; any of them where one is NaN.
template <class T>
T largest(const T* x, std::int64_t n);

template <class T>
struct ExpRow {
  T top;  // the largest element, so that no exponential overflows
  T total;  // of y; NaN where x holds one
};

// y = exp(x - top) of n > 0 elements, for double; that of float is rows::Kernels::exp_sum. y may be x.
template <class T>
ExpRow<T> exp_row(const T* x, std::int64_t n, T* y);

// Softmax of n > 0 elements, and its gradient where they were scaled first: scale * y * (g - sum(g * y)); for float and double. y
// may be x. A NaN fills its row: it enters the sum, and the sum divides every element.
template <class T>
void softmax_row(const T* x, std::int64_t n, rows::Stores stores, T* y);
template <class T>
void softmax_backward_row(const T* y, const T* g, std::int64_t n, T scale, rows::Stores stores, T* grad_x);

}  // namespace tessera::cpu
