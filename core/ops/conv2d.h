// Two-dimensional cross-correlation over NHWC images.
// x [n, h, w, in], weight [out, kh, kw, in/groups], bias [out] or undefined -> y [n, oh, ow, out], with
// oh = (h + 2 * padding - dilation * (kh - 1) - 1) / stride + 1. Output channel o reads the input channels of group
// o / (out / groups). Saves x and weight, on a GPU in x's dtype; grad_x is the transposed convolution of grad_y, grad_weight
// correlates x with grad_y, grad_bias sums grad_y over all positions. Gradients nobody needs are not computed.
// Beside images of bf16 weight, bias and their gradients are f32.
// Throws ShapeError when channels, groups, bias or window do not fit.
#pragma once

#include "core/autograd/var.h"
#include "core/conv2d_geometry.h"

namespace tessera {

Var conv2d(const Var& x, const Var& weight, const Var& bias = {}, const Conv2dOptions& options = {});

// relu(conv2d(x, weight, bias) + residual), for inference; the residual is of conv2d's shape, or undefined. While operations are
// recorded these are the three ops. Otherwise one, which in f32 and bf16 may answer 0 where the sum is NaN; without a residual
// the rectifier costs no walk over memory there.
Var conv2d_relu(const Var& x, const Var& weight, const Var& bias, const Var& residual, const Conv2dOptions& options = {});

// The shape of conv2d's result; throws as conv2d does.
Shape conv2d_output_shape(const Shape& x, const Shape& weight, const Conv2dOptions& options = {});

// All contiguous; bias, residual and grad_bias may be undefined. Every output element is written.
namespace cpu {
void conv2d_forward(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& y, const Conv2dOptions& options);
void conv2d_relu_forward(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& residual, const Tensor& y,
                         const Conv2dOptions& options);
void conv2d_backward_input(const Tensor& grad_y, const Tensor& weight, const Tensor& grad_x, const Conv2dOptions& options);
void conv2d_backward_weight(const Tensor& x, const Tensor& grad_y, const Tensor& grad_weight, const Tensor& grad_bias,
                            const Conv2dOptions& options);
}  // namespace cpu
namespace cuda {
void conv2d_forward(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& y, const Conv2dOptions& options);
void conv2d_relu_forward(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& residual, const Tensor& y,
                         const Conv2dOptions& options);
void conv2d_backward_input(const Tensor& grad_y, const Tensor& weight, const Tensor& grad_x, const Conv2dOptions& options);
void conv2d_backward_weight(const Tensor& x, const Tensor& grad_y, const Tensor& grad_weight, const Tensor& grad_bias,
                            const Conv2dOptions& options);
}  // namespace cuda

}  // namespace tessera
