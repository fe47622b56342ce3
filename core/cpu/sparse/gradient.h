// The gradient of the kept elements of a sparse convolution over NHWC images, a linear layer among them. Every element is summed
// in the same order whatever the number of threads.
#pragma once

#include <optional>

#include "core/cpu/sparse/gradient_units.h"

namespace tessera::cpu::sparse {

// grad, in the order of the plan's index: the sums over positions of grad_y x at the kept elements.
void gradient(const Kernels& kernels, const GradientPlan& plan, const Window& window, const float* x, const float* grad_y,
              float* grad);
// The same with strips of this height and width (gradient_units.h), or with panels.
void gradient(const Kernels& kernels, const GradientPlan& plan, const Window& window, const std::optional<Extent>& strips,
              const float* x, const float* grad_y, float* grad);

}  // namespace tessera::cpu::sparse
