// The kernel of the forward pass and of the input's gradient. It multiplies a stage while it copies the next to a second buffer.
#pragma once

#include "core/cuda/core_conv/async_copy.cuh"
#include "core/cuda/core_conv/gather.h"
#include "core/cuda/core_conv/kernels.h"
#include "core/cuda/kernel/launch.cuh"

namespace tessera::cuda::core_conv {

template <GatherTile kTile, int kStride, bool kFull>
__device__ inline void copy_stage(const GatherBlock<kTile, kStride, kFull>& block, int stage, const float* input,
                                  const float* weight, float* shared) {
  constexpr GatherSizes kSizes{kTile, kStride};
  copy_items<kSizes.threads>(block.problem.quads_of_input, kSizes.input_copies(), shared, input,
                             [&](auto width, int item) { return block.template input_copy<width>(stage, item); });
  copy_items<kSizes.threads>(block.problem.quads_of_weight, kSizes.weight_copies(), shared, weight,
                             [&](auto width, int item) { return block.template weight_copy<width>(stage, item); });
}

// Adds the sums of the other groups to those of the first, in order. Every thread of the block calls this.
template <class Block, int kGroups>
__device__ inline void add_groups(float* shared, int thread, typename Block::Sums& sums) {
  constexpr int kRows = sizeof(sums.at) / sizeof(sums.at[0]), kOuts = sizeof(sums.at[0]) / sizeof(float);
  __syncthreads();  // all threads have read the last stage
  if (Block::group_of(thread) > 0) {
#pragma unroll
    for (int i = 0; i < kRows * kOuts; ++i) {
      const int row = i / kOuts, out = i % kOuts;
      shared[Block::exchange_at(thread, row, out)] = sums.at[row][out];
    }
  }
  __syncthreads();
  if (Block::group_of(thread) > 0) return;
  for (int group = 1; group < kGroups; ++group) {
    const int other = thread + group * Block::kSizes.group_threads;
#pragma unroll
    for (int i = 0; i < kRows * kOuts; ++i) {
      const int row = i / kOuts, out = i % kOuts;
      sums.at[row][out] += shared[Block::exchange_at(other, row, out)];
    }
  }
}

// The tile is given by its index in the list, because nvcc takes no template arguments of class type for kernels. With several
// splits `result` is the workspace, and add_splits() adds the bias later.
template <int kIndex, int kStride, bool kFull>
__global__ void __launch_bounds__(GatherSizes(gather_tile(kFull, kStride, kIndex), kStride).threads,
                                  GatherSizes(gather_tile(kFull, kStride, kIndex), kStride).blocks())
    gather_kernel(const __grid_constant__ GatherProblem problem, const float* input, const float* weight, const float* bias,
                  float* result) {
  constexpr GatherTile kTile = gather_tile(kFull, kStride, kIndex);
  using Block = GatherBlock<kTile, kStride, kFull>;
  float* const shared = dynamic_shared<float>();
  const Block block(problem, static_cast<int>(blockIdx.x), static_cast<int>(blockIdx.y), static_cast<int>(blockIdx.z));
  if (block.empty()) return;
  const int thread = static_cast<int>(threadIdx.x);
  typename Block::Sums sums = {};
  run_stages<Block::kSizes.stage>(
      block.begin(), block.end(), shared, [&](int stage, float* buffer) { copy_stage(block, stage, input, weight, buffer); },
      [&](const float* buffer) { block.accumulate(buffer, thread, sums); });
  if constexpr (kTile.groups > 1) add_groups<Block, kTile.groups>(shared, thread, sums);
  if (Block::group_of(thread) > 0) return;
  float* const target = result + static_cast<long long>(block.split) * (problem.splits > 1 ? problem.numel() : 0);
  block.for_each_result(thread, sums, [&](int at, int out, float sum) { target[at] = bias == nullptr ? sum : sum + bias[out]; });
}

template <int kIndex, int kStride, bool kFull>
void launch_gather(const GatherProblem& problem, const GatherOperands& operands, Device device) {
  constexpr GatherSizes kSizes{gather_tile(kFull, kStride, kIndex), kStride};
  const auto size = [](int count) { return static_cast<unsigned>(count); };
  const int tiles = problem.images * problem.phases() * problem.tiles_y * problem.tiles_x;
  const LaunchShape shape{dim3(size(tiles), size(problem.out_tiles), size(problem.splits)), dim3(size(kSizes.threads)),
                          kSizes.shared * sizeof(float)};
  launch("core_conv", device, shape, gather_kernel<kIndex, kStride, kFull>, problem, operands.input, operands.weight,
         operands.bias, operands.result);
}

}  // namespace tessera::cuda::core_conv
