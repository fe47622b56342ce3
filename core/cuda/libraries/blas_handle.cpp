#include "core/cuda/libraries/blas_handle.h"

#include "core/cuda/runtime/error.h"
#include "core/cuda/runtime/per_device.h"
#include "core/support/error.h"

namespace tessera::cuda {

cublasLtHandle_t blas_handle(Device device) {
  struct Blas {};
  return per_device<Blas>(device, [] {
    cublasLtHandle_t handle = nullptr;
    check(cublasLtCreate(&handle), "cuBLASLt handle");
    return handle;
  });
}

void check(cublasStatus_t status, const char* operation) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  forget_error();
  const std::string text = str(operation, ": cuBLASLt: ", cublasLtGetStatusName(status), ": ", cublasLtGetStatusString(status));
  if (status == CUBLAS_STATUS_ALLOC_FAILED) throw OutOfMemoryError(text);
  throw DeviceError(text);
}

cudaDataType_t blas_type(DType dtype) {
  switch (dtype) {
    case DType::f32: return CUDA_R_32F;
    case DType::f64: return CUDA_R_64F;
    case DType::bf16: return CUDA_R_16BF;
    case DType::f16: return CUDA_R_16F;
    default: throw DTypeError(str("matmul: dtype is ", dtype, "; needs f32, f64, bf16 or f16"));
  }
}

}  // namespace tessera::cuda
