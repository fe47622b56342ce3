// Launches of the kernels of a fused Tucker-2 convolution. Arguments go to the GPU by value.
#pragma once

#include "core/cuda/tucker_conv/chain_arguments.h"
#include "core/cuda/tucker_conv/correlate_arguments.h"
#include "core/device/device.h"
#include "core/half.h"

namespace tessera::cuda {

// One pass in blocks of this shape, which is one of chain_blocks() (plan.h). With T = float, tensor cores round to tf32.
void launch_chain_f32(const ChainArguments<float>& arguments, const BlockShape& block, Device device);
void launch_chain_tf32(const ChainArguments<float>& arguments, const BlockShape& block, Device device);
void launch_chain_bf16(const ChainArguments<bfloat16>& arguments, const BlockShape& block, Device device);
void launch_chain_f16(const ChainArguments<float16>& arguments, const BlockShape& block, Device device);

// Partial results of all jobs by `walkers` blocks a group. Every element of arguments.partials is written.
void launch_correlate_f32(const CorrelateArguments<float>& arguments, int walkers, Device device);
void launch_correlate_tf32(const CorrelateArguments<float>& arguments, int walkers, Device device);
void launch_correlate_bf16(const CorrelateArguments<bfloat16>& arguments, int walkers, Device device);
void launch_correlate_f16(const CorrelateArguments<float16>& arguments, int walkers, Device device);

// Consecutive stretches of a partial result and where their sums go; `to` null: nowhere.
struct PartialSums {
  float* to[4] = {};
  std::int64_t end[4] = {};
  const float* partials = nullptr;
  int walkers = 0;
};
// to[i] = the sum over walkers, in their order.
void launch_partial_sums(const PartialSums& sums, Device device);

// to[i, tap, o] = from[o, tap, i] of up to three weights.
struct Transposition {
  const float* from = nullptr;
  float* to = nullptr;
  int outer = 0, taps = 1, inner = 0;  // of `from`
};
struct Transpositions {
  Transposition of[3];
};
void launch_transpositions(const Transpositions& all, Device device);

}  // namespace tessera::cuda
