// A convolution whose weight is in Tucker-2 form: 1x1 (in_factor), the core convolution, 1x1 (out_factor) with bias, nothing in
// between. x [n, h, w, c], in_factor [d1, 1, 1, c], core [d2, kh, kw, d1], out_factor [m, 1, 1, d2], bias [m] ->
// y [n, oh, ow, m]. A factor or the bias may be undefined. `options` are the core's.
// On the CPU these are three recorded convolutions (conv2d.h). On a GPU they are, where the planner takes the shape and the
// model or, under a DecisionScope, the clock prefers it, one op with kernels of its own for forward and both backwards.
// Saves x, the weights and, in training, the two narrow images, as the three convolutions do. To compute one of their elements
// again takes c or kh kw d1 multiply-adds, hundreds in the networks that one compresses; to store it and read it back takes 8
// bytes, the time of some 80 in f32 on a chip with 20 operations to the byte. Every block of the weights' gradients would compute
// them anew, so that storing wins on tensor cores as well.
// Throws as conv2d does.
#pragma once

#include <memory>
#include <string>

#include "core/fused_tucker_conv.h"
#include "core/ops/conv2d.h"

namespace tessera {

Var tucker2_conv2d(const Var& x, const Var& in_factor, const Var& core, const Var& out_factor, const Var& bias = {},
                   const Conv2dOptions& options = {});

// relu(tucker2_conv2d(...) + residual), for inference, as conv2d_relu(); the residual may be undefined.
Var tucker2_conv2d_relu(const Var& x, const Var& in_factor, const Var& core, const Var& out_factor, const Var& bias,
                        const Var& residual, const Conv2dOptions& options = {});

// Why these operands run as three convolutions; empty where they run as one op. `training`: as the forward of a recorded graph.
std::string tucker_conv_reason(const Var& x, const Var& in_factor, const Var& core, const Var& out_factor,
                               const Conv2dOptions& options, bool training);

// Null with `reason` where the backend has no kernel for the shape; with a kernel, `reason` says why it is predicted to lose.
namespace cpu {
std::shared_ptr<const FusedTuckerConv> fused_tucker_conv(const TuckerConvTensors& operands, const Conv2dOptions& options,
                                                         bool training, std::string& reason);
}  // namespace cpu
namespace cuda {
std::shared_ptr<const FusedTuckerConv> fused_tucker_conv(const TuckerConvTensors& operands, const Conv2dOptions& options,
                                                         bool training, std::string& reason);
}  // namespace cuda

}  // namespace tessera
