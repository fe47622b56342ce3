// Convolutions as plain loops: of f64, and of what the library refuses.
#pragma once

#include "core/conv2d_geometry.h"

namespace tessera::cuda {

// One pass, any geometry, added up in double in an order of its own. forward: a = x, b = weight -> y, without a bias;
// backward_input: grad_y, weight -> grad_x; backward_weight: x, grad_y -> grad_weight. a and b are of one dtype, the result is of
// that or, a weight's gradient, f32.
void conv2d_naive(Conv2dPass pass, const Conv2dGeometry& geometry, const Tensor& a, const Tensor& b, const Tensor& result);

}  // namespace tessera::cuda
