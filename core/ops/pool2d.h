// Pooling over windows of NHWC images: x [n, h, w, c] -> y [n, oh, ow, c], oh = (h + 2 * padding - kernel) / stride + 1.
// Padding never wins a maximum and is not counted in an average. Throws ShapeError on a wrong rank, a window that does not
// fit, or padding above half the kernel (a window could then hold no pixel).
#pragma once

#include "core/autograd/var.h"
#include "core/support/extent.h"

namespace tessera {

struct Pool2dOptions {
  Extent kernel{2, 2};
  Extent stride{2, 2};
  Extent padding{0, 0};
};

// Saves the position of each maximum (i32); the first maximum of a window receives the gradient. NaN propagates.
Var max_pool2d(const Var& x, const Pool2dOptions& options = {});
// Saves shapes only; each pixel of a window receives grad_y / (pixels in the window).
Var avg_pool2d(const Var& x, const Pool2dOptions& options = {});
// Mean over all pixels: x [n, h, w, c] -> y [n, c]. Saves the shape only.
Var global_avg_pool(const Var& x);

Shape pool2d_output_shape(const Shape& x, const Pool2dOptions& options);

// All contiguous. argmax [n, oh, ow, c] holds iy * w + ix.
namespace cpu {
void max_pool2d_forward(const Tensor& x, const Tensor& y, const Tensor& argmax, const Pool2dOptions& options);
void max_pool2d_backward(const Tensor& grad_y, const Tensor& argmax, const Tensor& grad_x, const Pool2dOptions& options);
void avg_pool2d_forward(const Tensor& x, const Tensor& y, const Pool2dOptions& options);
void avg_pool2d_backward(const Tensor& grad_y, const Tensor& grad_x, const Pool2dOptions& options);
void global_avg_pool_forward(const Tensor& x, const Tensor& y);
void global_avg_pool_backward(const Tensor& grad_y, const Tensor& grad_x);
}  // namespace cpu
namespace cuda {
void max_pool2d_forward(const Tensor& x, const Tensor& y, const Tensor& argmax, const Pool2dOptions& options);
void max_pool2d_backward(const Tensor& grad_y, const Tensor& argmax, const Tensor& grad_x, const Pool2dOptions& options);
void avg_pool2d_forward(const Tensor& x, const Tensor& y, const Pool2dOptions& options);
void avg_pool2d_backward(const Tensor& grad_y, const Tensor& grad_x, const Pool2dOptions& options);
void global_avg_pool_forward(const Tensor& x, const Tensor& y);
void global_avg_pool_backward(const Tensor& grad_y, const Tensor& grad_x);
}  // namespace cuda

}  // namespace tessera
