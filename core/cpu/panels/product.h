// Products of two f32 matrices whose smaller one is laid out in panels at each call. The larger one is read where it lies, and is
// not copied. So they suit weights that change with every step.
#pragma once

#include <cstddef>

#include "core/cpu/panels/problem.h"
#include "core/tensor.h"

namespace tessera::cpu::panels {

const Kernels& kernels();  // of isa()

struct Factors {
  const Tensor& a;  // [m, k], k > 0
  const Tensor& b;  // [k, n]
  bool b_transposed = false;  // b is [n, k]
};

// Whether the factor that product() lays out is the smaller one.
bool lays_out_smaller(const Factors& factors);

// y [m, n] = a b + bias [n], of contiguous f32; bias may be undefined. One thread sums an element in the order of k, so that the
// number of threads moves no bit.
void product(const Kernels& kernels, const Factors& factors, const Tensor& bias, const Tensor& y);

// How often this thread called product(): shows that a forced choice was obeyed.
std::size_t runs();

}  // namespace tessera::cpu::panels
