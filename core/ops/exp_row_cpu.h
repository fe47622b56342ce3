// What softmax and cross-entropy share of a row.
#pragma once

#include <cstdint>

namespace tessera::cpu {

// The largest of n > 0 elements, for float and double; any of them where one is NaN.
template <class T>
T largest(const T* x, std::int64_t n);

template <class T>
struct ExpRow {
  T top;    // the largest element, so that no exponential overflows
  T total;  // of y; NaN where x holds one
};

// y = exp(x - top) of n > 0 elements, for float and double. y may be x.
template <class T>
ExpRow<T> exp_row(const T* x, std::int64_t n, T* y);

}  // namespace tessera::cpu
