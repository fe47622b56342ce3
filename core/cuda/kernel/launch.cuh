// The one way to start a kernel: in a range named after the op, on the device's stream, with a check for errors.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/cuda/kernel/instructions.cuh"
#include "core/cuda/runtime/context.h"
#include "core/cuda/runtime/error.h"
#include "core/cuda/runtime/range.h"

namespace tessera::cuda {

struct LaunchShape {
  dim3 grid;  // nothing is launched if any is 0
  dim3 block;
  std::size_t shared = 0;  // dynamic, in bytes
};

template <class... Parameters, class... Arguments>
void launch(const char* name, Device device, const LaunchShape& shape, void (*kernel)(Parameters...),
            const Arguments&... arguments) {
  if (shape.grid.x == 0 || shape.grid.y == 0 || shape.grid.z == 0) return;  // an error in CUDA, but valid input here
  const Range range(name);
  const cudaStream_t stream = stream_of(device);
  if (shape.shared != 0) allow_shared(reinterpret_cast<const void*>(kernel), shape.shared, device, name);
  start_kernel<Parameters...>(shape.grid, shape.block, shape.shared, stream, kernel, static_cast<Parameters>(arguments)...);
  check(cudaGetLastError(), name);
}

// A grid for `count` items that a kernel walks in grid strides: as many threads as are resident at once, at most one per item.
inline LaunchShape grid_for(std::int64_t count, Device device, unsigned block = 256) {
  const std::int64_t wanted = (count + block - 1) / block;
  const Limits& limits = limits_of(device);
  const std::int64_t resident = std::int64_t{limits.processors} * limits.threads_per_processor / block;
  return {dim3(static_cast<unsigned>(std::min(wanted, resident))), dim3(block)};
}

// For loops of kernels launched with grid_for(): for (i = first_item(); i < count; i += item_stride()).
__device__ inline std::int64_t first_item() { return std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; }
__device__ inline std::int64_t item_stride() { return std::int64_t{gridDim.x} * blockDim.x; }

}  // namespace tessera::cuda
