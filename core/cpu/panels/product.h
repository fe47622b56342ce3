// Products of two f32 matrices of which the smaller is laid out in panels, call by call, while the larger is read where it lies:
// a layer's product in training, whose weights change with every step, so costs one walk over the smaller operand beside it.
#pragma once

#include "core/cpu/panels/problem.h"
#include "core/tensor.h"

namespace tessera::cpu::panels {

const Kernels& kernels();  // of isa()

// y [m, n] = a [m, k] b + bias [n] in f32, contiguous, with b [k, n], or [n, k] where `transposed`; bias may be undefined. k > 0.
// Every element is summed in the order of k, by one thread, whatever their number.
void product(const Kernels& kernels, const Tensor& a, const Tensor& b, bool transposed, const Tensor& bias, const Tensor& y);

}  // namespace tessera::cpu::panels
