// Linear maps and convolutions whose weight is sparse: what linear (core/ops/linear.h) and conv2d (core/ops/conv2d.h) give for
// the weight that has `values` where `weight` keeps an element and zeros elsewhere. values [count], in the order of the weight's
// elements; bias [out] or undefined. Saves x and values; gradients go to x, to the values and to the bias, none to what is not
// kept. No groups. Each of the three products is computed in one of several ways, which give the same up to rounding: `sparse`,
// by kernels that skip what is not kept, or `dense`, by the dense kernels on the composed weight; on a GPU also in `pieces`,
// where rows keep the same columns. The clock chooses, by layer shape, kept elements and batch (core/device/decisions.h).
// Without one the CPU takes `sparse` up to a density of 0.25, a GPU `dense`; f64 is `dense` on the CPU. Throw ShapeError on
// operands that do not fit, DTypeError and DeviceError as the dense ops do.
#pragma once

#include "core/autograd/var.h"
#include "core/conv2d_geometry.h"
#include "core/ops/sparse_weight.h"

namespace tessera {

// x [..., in], a weight [out, in] -> y [..., out].
Var sparse_linear(const Var& x, const Var& values, const SparseWeightPtr& weight, const Var& bias = {});
// x [n, h, w, in], a weight [out, kh, kw, in] -> y [n, oh, ow, out].
Var sparse_conv2d(const Var& x, const Var& values, const SparseWeightPtr& weight, const Var& bias = {},
                  const Conv2dOptions& options = {});
// relu(sparse_conv2d(...) + residual), the residual may be undefined: one kernel without it while nothing is recorded.
Var sparse_conv2d_relu(const Var& x, const Var& values, const SparseWeightPtr& weight, const Var& bias, const Var& residual,
                       const Conv2dOptions& options = {});

// The dense weight that the values stand for.
Tensor composed_weight(const Tensor& values, const SparseWeight& weight);

// x [n, h, w, in] and y [n, oh, ow, out] of a convolution, or [rows, in] and [rows, out]; all contiguous; bias and grad_bias may
// be undefined. Every output element is written.
namespace cpu {
void sparse_forward(const Tensor& x, const Tensor& values, const SparseWeight& weight, const Tensor& bias, const Tensor& y,
                    const Conv2dOptions& options, bool relu);
void sparse_backward_input(const Tensor& grad_y, const Tensor& values, const SparseWeight& weight, const Tensor& grad_x,
                           const Conv2dOptions& options);
void sparse_backward_values(const Tensor& x, const Tensor& grad_y, const SparseWeight& weight, const Tensor& grad_values,
                            const Tensor& grad_bias, const Conv2dOptions& options);
// dense, contiguous: zeros, and values[i] at positions[i]; and values[i] = dense[positions[i]].
void scatter_values(const Tensor& values, const Tensor& positions, const Tensor& dense);
void gather_values(const Tensor& dense, const Tensor& positions, const Tensor& values);
}  // namespace cpu
namespace cuda {
void sparse_forward(const Tensor& x, const Tensor& values, const SparseWeight& weight, const Tensor& bias, const Tensor& y,
                    const Conv2dOptions& options, bool relu);
void sparse_backward_input(const Tensor& grad_y, const Tensor& values, const SparseWeight& weight, const Tensor& grad_x,
                           const Conv2dOptions& options);
void sparse_backward_values(const Tensor& x, const Tensor& grad_y, const SparseWeight& weight, const Tensor& grad_values,
                            const Tensor& grad_bias, const Conv2dOptions& options);
void scatter_values(const Tensor& values, const Tensor& positions, const Tensor& dense);
void gather_values(const Tensor& dense, const Tensor& positions, const Tensor& values);
}  // namespace cuda

}  // namespace tessera
