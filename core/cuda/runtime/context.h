// What the process holds of each GPU: one stream, on which everything runs in order, the allocator, and the chip's limits.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "core/cuda/runtime/limits.h"
#include "core/device/device.h"

namespace tessera::cuda {

// Make `device` this thread's current one. Throw DeviceError naming the device when the process cannot use it, and why.
cudaStream_t stream_of(Device device);
const Limits& limits_of(Device device);

// Lets blocks of `kernel` have `dynamic` bytes of shared memory beside their static one. Throws DeviceError naming the operation
// where the GPU has less.
void allow_shared(const void* kernel, std::size_t dynamic, Device device, const char* operation);

// A stream of its own for copies that run beside the kernels.
cudaStream_t copy_stream_of(Device device);

// Compute capability, 90 for 9.0, of one of those that are counted; starts nothing on it.
int capability_of(int device);

// Waits for the stream of `device`, counted in transfer_stats(). `operation` names who waits.
void wait(Device device, const char* operation);

}  // namespace tessera::cuda
