// The fused Tucker-2 convolution on a GPU by a plan. Included by core/ops/tucker_conv_cuda.cpp, tests of the kernels and benchmarks only.
#pragma once

#include <memory>

#include "core/cuda/tucker_conv/plan.h"
#include "core/fused_tucker_conv.h"

namespace tessera::cuda {

// The kernels for `conv` in the plan's blocks and tiles, which chain_candidates() lists. `wins`: what predicted_to_win() says.
std::shared_ptr<const FusedTuckerConv> fused_tucker_conv(const TuckerConvShape& conv, const TuckerPlan& plan, bool wins,
                                                         Device device);

}  // namespace tessera::cuda
