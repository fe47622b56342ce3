// Convolutions of few channels, as the cores of Tucker-2 layers are, by kernels of our own (after TDC, Xiang et al. 2023: the
// small core convolution, for which a library leaves most of the GPU idle). Sums run in one fixed order: channels of a block in
// the order of its stages, then blocks of a split in their order by a second kernel, never by atomics.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/cuda/core_conv/problems.h"
#include "core/cuda/runtime/limits.h"
#include "core/dtype.h"
#include "core/conv2d_geometry.h"
#include "core/tensor.h"

namespace tessera::cuda {

struct CoreConvPlan {
  Conv2dPass pass = Conv2dPass::forward;
  bool full = true;  // every pixel has 3x3 taps
  int tile = 0;  // in kFullTiles, kOtherTiles or, for the weights' gradient, kWeightTiles
  core_conv::GatherProblem gather = {};
  core_conv::WeightProblem weight = {};  // of the weights' gradient
  std::int64_t weights = 0;  // elements
  double seconds = 0;  // predicted, of all its kernels
  double library_seconds = 0;  // predicted, of the library's fastest

  int splits() const { return pass == Conv2dPass::backward_weight ? weight.splits : gather.splits; }
  int numel() const { return pass == Conv2dPass::backward_weight ? weight.numel() : gather.numel(); }
  // Partial results that the second kernel adds up, in floats; 0 where there is no second kernel.
  std::size_t workspace() const {
    return splits() > 1 ? static_cast<std::size_t>(splits()) * static_cast<std::size_t>(numel()) : 0;
  }
};

// Every tile and split that can run the pass, fastest prediction first; the order of the lists decides ties. Empty, with a
// sentence in `reason`, where none can: f32, one group, no dilation, strides of 1 or 2 along both axes, kernels of 3x3 pixels at
// most but more than one, up to 256 channels on either side, and operands that 32 bits can count.
std::vector<CoreConvPlan> core_conv_candidates(Conv2dPass pass, const Conv2dGeometry& geometry, DType dtype, const Limits& limits,
                                               std::string* reason);

// The first of them. None, with a sentence in `reason`, where there are none or the library is predicted to be faster.
std::optional<CoreConvPlan> plan_core_conv(Conv2dPass pass, const Conv2dGeometry& geometry, DType dtype, const Limits& limits,
                                           std::string* reason);

// "14x8 pixels x 32 channels, 2 splits": for reports.
std::string describe(const CoreConvPlan& plan);

// forward: x, weight, bias or undefined -> y; backward_input: grad_y, weight -> grad_x; backward_weight: x, grad_y ->
// grad_weight. All contiguous, on one GPU, and of the geometry that was planned. With the CUDA backend only.
void run_core_conv(const CoreConvPlan& plan, const Tensor& a, const Tensor& b, const Tensor& bias, const Tensor& result);

}  // namespace tessera::cuda
