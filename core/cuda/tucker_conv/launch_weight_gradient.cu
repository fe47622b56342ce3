// Weight gradients of the fused Tucker-2 convolution, and the preparation of its weights for the backward pass.
#include <algorithm>

#include "core/cuda/kernel/launch.cuh"
#include "core/cuda/tucker_conv/correlate.h"

namespace tessera::cuda {
namespace {

template <class Math>
__global__ void __launch_bounds__(kBlockThreads, 1)
    tucker_correlate(const __grid_constant__ CorrelateArguments<typename Math::Storage> args) {
  DeviceBlock<CorrelateState> block;
  int index = static_cast<int>(blockIdx.y);
  const int job = find_job(args, index);
  const CorrelateBlock of{.job = job, .group = args.jobs[job].shape.group(index), .walker = static_cast<int>(blockIdx.x),
                          .walkers = static_cast<int>(gridDim.x)};
  Correlate<Math, DeviceBlock<CorrelateState>>(block, args, of, dynamic_shared<char>()).run();
}

template <class Math, class T>
void launch_correlate(const CorrelateArguments<T>& args, int walkers, Device device) {
  unsigned groups = 0;
  int elements = 0;
  for (int job = 0; job < args.count; ++job) {
    groups += static_cast<unsigned>(args.jobs[job].shape.groups());
    elements = std::max(elements, args.jobs[job].shape.shared_elements());
  }
  launch("tucker_conv_weights", device,
         {dim3(static_cast<unsigned>(walkers), groups), dim3(kBlockThreads), static_cast<std::size_t>(elements) * sizeof(T)},
         tucker_correlate<Math>, args);
}

__global__ void __launch_bounds__(256) partial_sums(const __grid_constant__ PartialSums sums) {
  const std::int64_t size = sums.end[3];
  for (std::int64_t i = first_item(); i < size; i += item_stride()) {
    float sum = 0;
    for (int walker = 0; walker < sums.walkers; ++walker) sum += sums.partials[walker * size + i];
    std::int64_t begin = 0;
#pragma unroll
    for (int part = 0; part < 4; ++part) {
      if (i >= begin && i < sums.end[part] && sums.to[part] != nullptr) sums.to[part][i - begin] = sum;
      begin = sums.end[part];
    }
  }
}

__global__ void __launch_bounds__(256) transpose_weights(const __grid_constant__ Transpositions all) {
#pragma unroll
  for (int job = 0; job < 3; ++job) {
    const Transposition& one = all.of[job];
    if (one.from == nullptr) continue;
    const int size = one.outer * one.taps * one.inner;
    for (int i = static_cast<int>(first_item()); i < size; i += static_cast<int>(item_stride())) {
      const int outer = i % one.outer;
      const int tap = i / one.outer % one.taps;
      const int inner = i / one.outer / one.taps;
      one.to[i] = one.from[(outer * one.taps + tap) * one.inner + inner];
    }
  }
}

}  // namespace

void launch_correlate_f32(const CorrelateArguments<float>& arguments, int walkers, Device device) {
  launch_correlate<CorrelateFfma>(arguments, walkers, device);
}
void launch_correlate_tf32(const CorrelateArguments<float>& arguments, int walkers, Device device) {
  launch_correlate<CorrelateMma<float>>(arguments, walkers, device);
}
void launch_correlate_bf16(const CorrelateArguments<bfloat16>& arguments, int walkers, Device device) {
  launch_correlate<CorrelateMma<bfloat16>>(arguments, walkers, device);
}
void launch_correlate_f16(const CorrelateArguments<float16>& arguments, int walkers, Device device) {
  launch_correlate<CorrelateMma<float16>>(arguments, walkers, device);
}

void launch_partial_sums(const PartialSums& sums, Device device) {
  launch("tucker_conv_sums", device, grid_for(sums.end[3], device), partial_sums, sums);
}

void launch_transpositions(const Transpositions& all, Device device) {
  std::int64_t most = 0;
  for (const Transposition& one : all.of) most = std::max(most, std::int64_t{one.outer} * one.taps * one.inner);
  launch("tucker_conv_transpose", device, grid_for(most, device), transpose_weights, all);
}

}  // namespace tessera::cuda
