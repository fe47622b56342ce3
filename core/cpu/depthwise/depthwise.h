// Convolutions of NHWC images in f32 in which every channel has a filter of its own. They do few multiplications for each
// element that they move: pixels are read where they lie, vectors are of channels, and 3x3 filters stay in registers.
#pragma once

#include "core/cpu/depthwise/problem.h"
#include "core/cpu/reference/conv2d.h"
#include "core/tensor.h"

namespace tessera::cpu::depthwise {

// Whether a convolution is depthwise: it has as many groups, more than one, as x has channels, and y has as many
// channels.
bool suits(const reference::Conv2dGeometry& g);

// The kernels for isa().
const Kernels& kernels();

// The packed filters [kh * kw, channels] of weight [channels, kh, kw, 1]: for forward(), and for backward_input(), which wants
// them turned by half a turn where the stride is 1.
Tensor filters(const Tensor& weight);
Tensor input_grad_filters(const reference::Conv2dGeometry& g, const Tensor& weight);

// Tensors as in core/ops/conv2d.h, contiguous; `filters` as the functions above give them. Every output element is written.
void forward(const Kernels& kernels, const reference::Conv2dGeometry& g, const Tensor& x, const Tensor& filters,
             const Epilogue& epilogue, const Tensor& y);
// Every element of grad_x gathers what it gave to outputs: nothing is scattered, whatever the stride.
void backward_input(const Kernels& kernels, const reference::Conv2dGeometry& g, const Tensor& grad_y, const Tensor& filters,
                    const Tensor& grad_x);
// The rows of all images are cut into pieces whose sums are added in their order, whatever the number of threads.
void backward_weight(const Kernels& kernels, const reference::Conv2dGeometry& g, const Tensor& x, const Tensor& grad_y,
                     const Tensor& grad_weight);

}  // namespace tessera::cpu::depthwise
