// Status codes of the CUDA runtime as exceptions that name the operation.
#pragma once

#include <cuda_runtime_api.h>

namespace tessera::cuda {

// OutOfMemoryError for an allocation that failed, DeviceError for everything else: "relu: cudaErrorLaunchFailure: unspecified
// launch failure". An error of a kernel shows at a later call; CUDA_LAUNCH_BLOCKING=1 makes it show at its own.
void check(cudaError_t status, const char* operation);

// Drops what the runtime remembers of an error that was met already: the next launch would be blamed for it. A library's call
// that fails may leave one.
void forget_error() noexcept;

}  // namespace tessera::cuda
