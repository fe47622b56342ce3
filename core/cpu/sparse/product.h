// Convolutions with sparse weights over NHWC images, a linear layer among them. Every element is summed in the same order
// whatever the number of threads.
#pragma once

#include "core/cpu/sparse/plan.h"
#include "core/cpu/sparse/window.h"

namespace tessera::cpu::sparse {

const Kernels& kernels();  // of isa()

// y [positions, plan.rows] = A x + bias, clamped from below at 0 with `relu`; the bias may be null. `weights` are packed: weight
// i is the kept element plan.from[i].
void multiply(const Kernels& kernels, const Plan& plan, const float* weights, const Window& window, const float* x,
              const float* bias, bool relu, float* y);

}  // namespace tessera::cpu::sparse
