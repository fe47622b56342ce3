// cuBLASLt's handles, owned, and its status codes as exceptions.
#pragma once

#include <cublasLt.h>

#include "core/cuda/runtime/handle.h"
#include "core/device/device.h"
#include "core/dtype.h"

namespace tessera::cuda {

using Operation = UniqueHandle<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy>;
using Layout = UniqueHandle<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>;
using Preference = UniqueHandle<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy>;

// The device's; made on first use, never destroyed. Makes `device` this thread's current one.
cublasLtHandle_t blas_handle(Device device);

// OutOfMemoryError where the library could not allocate, DeviceError for everything else: "linear: cuBLASLt: ...".
void check(cublasStatus_t status, const char* operation);

// The library's name of an element type. Throws DTypeError unless it is f32, f64, bf16 or f16.
cudaDataType_t blas_type(DType dtype);

}  // namespace tessera::cuda
