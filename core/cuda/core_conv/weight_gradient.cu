// The gradient of the weights. Every split sums its share of the pixels, stage by stage, into a separate partial result.
#include "core/cuda/core_conv/weight_gradient.h"

#include "core/cuda/core_conv/async_copy.cuh"
#include "core/cuda/core_conv/kernels.h"
#include "core/cuda/kernel/launch.cuh"

namespace tessera::cuda::core_conv {
namespace {

template <WeightTile kTile, int kStride>
__device__ inline void copy_stage(const WeightBlock<kTile, kStride>& block, int stage, const float* input, const float* gradient,
                                  float* shared) {
  constexpr WeightSizes kSizes{kTile, kStride};
  const auto place = block.place(stage);
  copy_items<kSizes.threads>(block.problem.quads_of_input, kSizes.input / 4, shared, input,
                             [&](auto width, int item) { return block.template input_copy<width>(place, item); });
  copy_items<kSizes.threads>(block.problem.quads_of_gradient, (kSizes.stage - kSizes.input) / 4, shared, gradient,
                             [&](auto width, int item) { return block.template gradient_copy<width>(place, item); });
}

// The tile is given by its index in the list, because nvcc takes no template arguments of class type for kernels.
template <int kIndex, int kStride>
__global__ void __launch_bounds__(WeightSizes(kWeightTiles[kIndex], kStride).threads,
                                  WeightSizes(kWeightTiles[kIndex], kStride).blocks())
    weight_kernel(const __grid_constant__ WeightProblem problem, const float* input, const float* gradient, float* result) {
  using Block = WeightBlock<kWeightTiles[kIndex], kStride>;
  float* const shared = dynamic_shared<float>();
  const Block block(problem, static_cast<int>(blockIdx.x), static_cast<int>(blockIdx.y), static_cast<int>(blockIdx.z));
  const int thread = static_cast<int>(threadIdx.x);
  typename Block::Sums sums = {};
  run_stages<Block::kSizes.stage>(
      block.begin(), block.end(), shared, [&](int stage, float* buffer) { copy_stage(block, stage, input, gradient, buffer); },
      [&](const float* buffer) { block.accumulate(buffer, thread, sums); });
  float* const target = result + static_cast<long long>(block.split) * problem.numel();
  block.for_each_result(thread, sums, [&](int at, float sum) { target[at] = sum; });
}

template <int kIndex, int kStride>
void launch_weight(const WeightProblem& problem, const float* input, const float* gradient, float* result, Device device) {
  constexpr WeightSizes kSizes{kWeightTiles[kIndex], kStride};
  const auto size = [](int count) { return static_cast<unsigned>(count); };
  const LaunchShape shape{dim3(size(problem.in_tiles), size(problem.out_tiles), size(problem.splits)), dim3(size(kSizes.threads)),
                          kSizes.shared * sizeof(float)};
  launch("core_conv_weight", device, shape, weight_kernel<kIndex, kStride>, problem, input, gradient, result);
}

__global__ void __launch_bounds__(256)
    add_splits_kernel(const float* workspace, int numel, int splits, const float* bias, int outs, float* result) {
  const SplitSums sums{.workspace = workspace, .numel = numel, .splits = splits, .bias = bias, .outs = outs};
  const auto stride = static_cast<int>(item_stride());
  for (auto at = static_cast<int>(first_item()); at < sums.numel; at += stride) result[at] = sum_of_splits(sums, at);
}

}  // namespace

void weight_gradient(int tile, const WeightProblem& problem, const float* input, const float* gradient, float* result,
                     Device device) {
  visit_index<kWeightTiles.size()>(tile, [&]<int kIndex>() {
    if (problem.stride == 1) {
      launch_weight<kIndex, 1>(problem, input, gradient, result, device);
    } else {
      launch_weight<kIndex, 2>(problem, input, gradient, result, device);
    }
  });
}

void add_splits(const SplitSums& sums, float* result, Device device) {
  launch("core_conv_add_splits", device, grid_for(sums.numel, device), add_splits_kernel, sums.workspace, sums.numel,
         sums.splits, sums.bias, sums.outs, result);
}

}  // namespace tessera::cuda::core_conv
