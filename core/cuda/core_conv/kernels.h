// The kernels of the core convolution, by their tile's place in its list. Pointers are to the device.
#pragma once

#include "core/cuda/core_conv/problems.h"
#include "core/device/device.h"

namespace tessera::cuda::core_conv {

struct GatherOperands {
  const float* input;
  const float* weight;
  const float* bias;  // may be null
  float* result;  // of all splits, one behind the other, where there are several
};

void gather_full(int tile, const GatherProblem& problem, const GatherOperands& operands, Device device);  // 3x3, stride 1
void gather_full_by_two(int tile, const GatherProblem& problem, const GatherOperands& operands, Device device);  // 3x3, stride 2
void gather_partial(int tile, const GatherProblem& problem, const GatherOperands& operands, Device device);  // fewer taps

void weight_gradient(int tile, const WeightProblem& problem, const float* input, const float* gradient, float* result,
                     Device device);

// result[i] = the sum of workspace[split][i] over splits, in order, and of bias[i % outs] where there is a bias.
void add_splits(const SplitSums& sums, float* result, Device device);

}  // namespace tessera::cuda::core_conv
