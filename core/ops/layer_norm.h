// Layer normalisation over the last dimension (Ba, Kiros & Hinton 2016).
// x [..., n], gamma [n], beta [n] -> y [..., n] = gamma * h + beta, h = (x - mean) * inv_std, with each row's mean and biased
// variance, inv_std = 1 / sqrt(var + eps). Saves x, mean and inv_std. With a = g * gamma:
//   grad_x = inv_std * (a - mean(a) - h * mean(a * h)), grad_gamma = sum over rows of g * h, grad_beta = sum over rows of g.
// Throws ShapeError when x is a scalar or gamma or beta is not [n].
#pragma once

#include "core/autograd/var.h"

namespace tessera {

Var layer_norm(const Var& x, const Var& gamma, const Var& beta, double eps = 1e-5);

// x, y, grad_y, grad_x [rows, n]; mean, inv_std [rows]; per-column tensors [n]; all contiguous. grad_x, or both
// grad_gamma and grad_beta, may be undefined. Without beta, mean and grad_beta they are those of RMS norm (core/ops/rms_norm.h):
// the mean counts as 0.
namespace cpu {
void layer_norm_forward(const Tensor& x, const Tensor& gamma, const Tensor& beta, double eps, const Tensor& y, const Tensor& mean,
                        const Tensor& inv_std);
void layer_norm_backward(const Tensor& x, const Tensor& grad_y, const Tensor& gamma, const Tensor& mean, const Tensor& inv_std,
                         const Tensor& grad_x, const Tensor& grad_gamma, const Tensor& grad_beta);
}  // namespace cpu
namespace cuda {
void layer_norm_forward(const Tensor& x, const Tensor& gamma, const Tensor& beta, double eps, const Tensor& y, const Tensor& mean,
                        const Tensor& inv_std);
void layer_norm_backward(const Tensor& x, const Tensor& grad_y, const Tensor& gamma, const Tensor& mean, const Tensor& inv_std,
                         const Tensor& grad_x, const Tensor& grad_gamma, const Tensor& grad_beta);
}  // namespace cuda

}  // namespace tessera
