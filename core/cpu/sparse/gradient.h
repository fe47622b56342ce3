// The gradient of the kept elements of a sparse convolution over NHWC images, a linear layer among them. Every element is summed
// in the same order whatever the number of threads.
#pragma once

#include "core/cpu/sparse/plan.h"
#include "core/cpu/sparse/window.h"

namespace tessera::cpu::sparse {

// grad [plan.from.size()], packed: the sums over positions of grad_y x at the kept elements. The plan is a row_plan().
void gradient(const Kernels& kernels, const Plan& plan, const Window& window, const float* x, const float* grad_y, float* grad);

}  // namespace tessera::cpu::sparse
