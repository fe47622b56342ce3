// cuSOLVER's handles, owned, and its status codes as exceptions.
#pragma once

#include <cusolverDn.h>

#include "core/cuda/runtime/handle.h"
#include "core/device/device.h"

namespace tessera::cuda {

using SolverParameters = UniqueHandle<cusolverDnParams_t, cusolverDnDestroyParams>;
using JacobiParameters = UniqueHandle<gesvdjInfo_t, cusolverDnDestroyGesvdjInfo>;

// The device's, on its stream, giving equal bytes in every run; made on first use, never destroyed. Makes `device` current.
cusolverDnHandle_t solver_handle(Device device);

// OutOfMemoryError where the library could not allocate, DeviceError for everything else: "svd: cuSOLVER: ...".
void check(cusolverStatus_t status, const char* operation);

SolverParameters make_solver_parameters();
JacobiParameters make_jacobi_parameters();

}  // namespace tessera::cuda
