// The language that references are written in: plain f64 values by index, one at a time, with no kernel of the library.
#pragma once

#include <functional>
#include <vector>

#include "core/tensor.h"

namespace tessera::testing {

using Index = std::vector<std::int64_t>;

// Calls visit for every index of the shape, last axis fastest.
void for_each_index(const Shape& shape, const std::function<void(const Index&)>& visit);

// x's element at `index`, where x broadcasts to the shape that index runs over. Any real or integer dtype.
double element(const Tensor& x, const Index& index);

// An element of a contiguous f64 tensor, to read and to write.
template <class... Index>
double& at(const Tensor& x, Index... index) {
  std::int64_t offset = 0;
  int axis = 0;
  ((offset = offset * x.dim(axis++) + index), ...);
  return x.data<double>()[offset];
}

// An f64 tensor with value(index) everywhere.
Tensor build(const Shape& shape, const std::function<double(const Index&)>& value);

}  // namespace tessera::testing
