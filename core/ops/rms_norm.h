// Normalisation by the root of the mean square over the last dimension (Zhang and Sennrich, 2019).
// x [..., n], gamma [n] -> y [..., n] = gamma * h, h = x * inv_rms, inv_rms = 1 / sqrt(mean(x^2) + eps) of each row. Saves x and
// inv_rms. With a = g * gamma: grad_x = inv_rms * (a - h * mean(a * h)), grad_gamma = sum over rows of g * h.
// Throws ShapeError when x is a scalar or gamma is not [n], DTypeError and DeviceError as layer_norm does.
#pragma once

#include "core/autograd/var.h"

namespace tessera {

// Its kernels are those of core/ops/layer_norm.h without a mean.
Var rms_norm(const Var& x, const Var& gamma, double eps);

}  // namespace tessera
