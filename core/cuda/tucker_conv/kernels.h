// The arguments of the kernels of a fused Tucker-2 convolution, and their launches. Arguments are plain numbers and addresses of
// the device, which go to the GPU by value.
#pragma once

#include <cstdint>

#include "core/cuda/tucker_conv/shapes.h"
#include "core/device/device.h"
#include "core/half.h"

namespace tessera::cuda {

// A pass (chain.h). Weights are f32 with the channels that are summed over contiguous: in_factor [narrow_in, wide_in],
// core [narrow_out, kh, kw, narrow_in], out_factor [wide_out, narrow_out].
template <class T>
struct ChainArguments {
  ChainShape shape;
  const T* x = nullptr;
  const float* in_factor = nullptr;
  const float* core = nullptr;
  const float* out_factor = nullptr;
  const float* bias = nullptr;   // may be null
  const T* residual = nullptr;   // of y's shape; may be null
  T* y = nullptr;                // null: only the narrow images are wanted
  T* narrow_in = nullptr;        // null: not stored
  T* narrow_out = nullptr;       // likewise
  bool relu = false;
  bool vector_x = false, vector_in = false, vector_core = false, vector_out = false;  // StagedRows::vector of block.h
};

// One pass in blocks of this shape, which is one of chain_blocks() (plan.h). With T = float, tensor cores round to tf32.
void launch_chain_f32(const ChainArguments<float>& arguments, const BlockShape& block, Device device);
void launch_chain_tf32(const ChainArguments<float>& arguments, const BlockShape& block, Device device);
void launch_chain_bf16(const ChainArguments<bfloat16>& arguments, const BlockShape& block, Device device);
void launch_chain_f16(const ChainArguments<float16>& arguments, const BlockShape& block, Device device);

// One of the correlations (correlate.h).
template <class T>
struct Correlation {
  CorrelationShape shape;
  const T* left = nullptr;
  const T* right = nullptr;
  bool vector_left = false, vector_right = false;
  bool sums_left = false;  // and the bias gradient, the sum of `left` over pixels
  std::int64_t begin = 0;  // of its weight gradient in a partial result
};

template <class T>
struct CorrelateArguments {
  Correlation<T> jobs[3];
  int count = 0;
  std::int64_t bias_begin = 0;
  std::int64_t partial_size = 0;  // elements of one partial result
  float* partials = nullptr;
};

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
