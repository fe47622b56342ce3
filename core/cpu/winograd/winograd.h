// Winograd's minimal filtering F(4x4, 3x3) (Lavin & Gray 2016) of NHWC images in f32 or bf16, by products in f32. Its tiles go
// from the image through the products to the result inside a cache, without a reorder of the images; it has a quarter of a direct
// convolution's multiplications. The transforms lose about a digit. Weights are f32, and are not rounded where images are bf16.
#pragma once

#include "core/cpu/reference/conv2d.h"
#include "core/cpu/winograd/problem.h"
#include "core/tensor.h"

namespace tessera::cpu::winograd {

// 3x3, stride and dilation 1, one group, at most 2 pixels of padding.
bool suits(const reference::Conv2dGeometry& g);

// Bytes of the transformed filters.
std::int64_t filter_bytes(const reference::Conv2dGeometry& g);

// The kernels for isa().
const Kernels& kernels();

// The transformed filters of weight [out, 3, 3, in]: for forward(), and for backward_input().
Tensor filters(const Kernels& kernels, const Tensor& weight);
Tensor turned_filters(const Kernels& kernels, const Tensor& weight);

// Tensors as in core/ops/conv2d.h, contiguous; `filters` as the functions above give them. Every output element is written.
void forward(const Kernels& kernels, const reference::Conv2dGeometry& g, const Tensor& x, const Tensor& filters,
             const Epilogue& epilogue, const Tensor& y);
void backward_input(const Kernels& kernels, const reference::Conv2dGeometry& g, const Tensor& grad_y,
                    const Tensor& turned_filters, const Tensor& grad_x);
// Each thread sums its tiles, then the threads' sums are added in their order.
void backward_weight(const Kernels& kernels, const reference::Conv2dGeometry& g, const Tensor& x, const Tensor& grad_y,
                     const Tensor& grad_weight);

}  // namespace tessera::cpu::winograd
