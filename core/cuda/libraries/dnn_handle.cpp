#include "core/cuda/libraries/dnn_handle.h"

#include "core/cuda/runtime/error.h"
#include "core/cuda/runtime/per_device.h"
#include "core/support/error.h"

namespace tessera::cuda {
namespace {

bool lacks_memory(cudnnStatus_t status) {
  return status == CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED ||
         status == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED;
}

// The thousands of a status give its kind: 2xxx are arguments that are not allowed together, 3xxx are kernels that do not exist,
// 4xxx are internal errors.
int kind_of(cudnnStatus_t status) { return static_cast<int>(status) / 1000; }

}  // namespace

cudnnHandle_t dnn_handle(Device device) {
  struct Dnn {};
  return per_device<Dnn>(device, [device] {
    cudnnHandle_t handle = nullptr;
    check(cudnnCreate(&handle), "cuDNN handle");
    check(cudnnSetStream(handle, stream_of(device)), "cuDNN handle");
    return handle;
  });
}

void check(cudnnStatus_t status, const char* operation) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  forget_error();
  const std::string text = str(operation, ": cuDNN: ", cudnnGetErrorString(status));
  if (lacks_memory(status)) throw OutOfMemoryError(text);
  throw DeviceError(text);
}

bool is_refusal(cudnnStatus_t status) {
  const bool refusal = kind_of(status) == 2 || kind_of(status) == 3;
  if (refusal) forget_error();
  return refusal;
}

bool is_unoffered(cudnnStatus_t status) {
  if (is_refusal(status)) return true;
  const bool internal = kind_of(status) == 4 && !lacks_memory(status);
  if (internal) forget_error();
  return internal;
}

cudnnDataType_t dnn_type(DType dtype) {
  switch (dtype) {
    case DType::f32: return CUDNN_DATA_FLOAT;
    case DType::f64: return CUDNN_DATA_DOUBLE;
    case DType::bf16: return CUDNN_DATA_BFLOAT16;
    case DType::f16: return CUDNN_DATA_HALF;
    default: throw DTypeError(str("cuDNN: dtype is ", dtype, "; needs f32, f64, bf16 or f16"));
  }
}

TensorDescriptor describe_images(DType dtype, std::int64_t n, std::int64_t h, std::int64_t w, std::int64_t channels) {
  cudnnTensorDescriptor_t made = nullptr;
  check(cudnnCreateTensorDescriptor(&made), "cuDNN images");
  TensorDescriptor owned(made);
  check(cudnnSetTensor4dDescriptor(made, CUDNN_TENSOR_NHWC, dnn_type(dtype), static_cast<int>(n), static_cast<int>(channels),
                                   static_cast<int>(h), static_cast<int>(w)),
        "cuDNN images");
  return owned;
}

FilterDescriptor describe_filters(DType dtype, std::int64_t out, std::int64_t kh, std::int64_t kw, std::int64_t in) {
  cudnnFilterDescriptor_t made = nullptr;
  check(cudnnCreateFilterDescriptor(&made), "cuDNN filters");
  FilterDescriptor owned(made);
  check(cudnnSetFilter4dDescriptor(made, dnn_type(dtype), CUDNN_TENSOR_NHWC, static_cast<int>(out), static_cast<int>(in),
                                   static_cast<int>(kh), static_cast<int>(kw)),
        "cuDNN filters");
  return owned;
}

}  // namespace tessera::cuda
