// Batch normalisation over every dimension but the last (Ioffe & Szegedy 2015), with what follows it in a residual block done
// in the same walk over memory: an addition and a ReLU.
// x [..., c], gamma [c], beta [c], running_mean [c], running_var [c], residual as x or undefined -> y [..., c].
// Training: y = gamma * (x - mean) * inv_std + beta with the batch's mean and biased variance, inv_std = 1 / sqrt(var + eps);
// updates the running statistics in place, running = (1 - momentum) * running + momentum * batch, with the unbiased variance
// (the biased one when there is a single row; an empty batch leaves them alone). Inference: the running statistics replace
// the batch's. Then y += residual where there is one, and y = max(y, 0) with `relu`. Saves x, mean, inv_std and, with `relu`, y
// where there is a residual; without one its sign is computed again. Writes grad_x into grad_y where nobody else holds that. With
// h = (x - mean) * inv_std, m rows, and g the gradient of y, 0 where `relu` cut:
//   grad_beta = sum(g), grad_gamma = sum(g * h), grad_x = gamma * inv_std * (g - grad_beta / m - h * grad_gamma / m),
//   in inference grad_x = gamma * inv_std * g; grad_residual = g.
// With `ranks` m counts the rows of all of them, each of which has as many, and mean, variance and the two sums in grad_x are
// those over all rows; grad_gamma and grad_beta are sums over this rank's. Both directions are collective then. Throws ShapeError
// when a per-channel operand is not [c] or the residual is not of x's shape.
#pragma once

#include "core/autograd/var.h"
#include "core/comm/communicator.h"

namespace tessera {

struct BatchNormOptions {
  bool training;
  double momentum = 0.1;
  double eps = 1e-5;
  bool relu = false;
  Communicator* ranks = nullptr;  // that normalise their rows together, in training on the CPU; null: this process alone
};

Var batch_norm(const Var& x, const Var& gamma, const Var& beta, const Tensor& running_mean, const Tensor& running_var,
               const BatchNormOptions& options, const Var& residual = {});

// What a ReLU let through: gradients count where y > 0. With beta y is computed again from x: three numbers a channel instead of
// a third walk over memory. Both undefined: there was no ReLU.
struct BatchNormRelu {
  Tensor y;
  Tensor beta;
};

// Per-channel tensors are [c], contiguous; x, y, residual and their gradients [rows, c]. A `training` gradient passes through the
// statistics. backward_parameters writes the gradient that counts to grad_masked where that is defined. grad_masked and grad_x
// may be grad_y.
namespace cpu {
void batch_norm_statistics(const Tensor& x, const Tensor& mean, const Tensor& var);
void batch_norm_forward(const Tensor& x, const Tensor& mean, const Tensor& inv_std, const Tensor& gamma, const Tensor& beta,
                        const Tensor& residual, bool relu, const Tensor& y);
void batch_norm_update(const Tensor& mean, const Tensor& var, const Tensor& running_mean, const Tensor& running_var,
                       std::int64_t rows, double momentum);
void batch_norm_inv_std(const Tensor& var, const Tensor& inv_std, double eps);
void batch_norm_backward_parameters(const Tensor& x, const Tensor& grad_y, const BatchNormRelu& relu, const Tensor& mean,
                                    const Tensor& inv_std, const Tensor& gamma, const Tensor& grad_gamma, const Tensor& grad_beta,
                                    const Tensor& grad_masked);
void batch_norm_backward_input(const Tensor& x, const Tensor& grad_y, const BatchNormRelu& relu, const Tensor& mean,
                               const Tensor& inv_std, const Tensor& gamma, const Tensor& grad_gamma, const Tensor& grad_beta,
                               bool training, const Tensor& grad_x);
}  // namespace cpu
namespace cuda {
void batch_norm_statistics(const Tensor& x, const Tensor& mean, const Tensor& var);
void batch_norm_forward(const Tensor& x, const Tensor& mean, const Tensor& inv_std, const Tensor& gamma, const Tensor& beta,
                        const Tensor& residual, bool relu, const Tensor& y);
void batch_norm_update(const Tensor& mean, const Tensor& var, const Tensor& running_mean, const Tensor& running_var,
                       std::int64_t rows, double momentum);
void batch_norm_inv_std(const Tensor& var, const Tensor& inv_std, double eps);
void batch_norm_backward_parameters(const Tensor& x, const Tensor& grad_y, const BatchNormRelu& relu, const Tensor& mean,
                                    const Tensor& inv_std, const Tensor& gamma, const Tensor& grad_gamma, const Tensor& grad_beta,
                                    const Tensor& grad_masked);
void batch_norm_backward_input(const Tensor& x, const Tensor& grad_y, const BatchNormRelu& relu, const Tensor& mean,
                               const Tensor& inv_std, const Tensor& gamma, const Tensor& grad_gamma, const Tensor& grad_beta,
                               bool training, const Tensor& grad_x);
}  // namespace cuda

}  // namespace tessera
