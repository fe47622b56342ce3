// cuDNN's handle and descriptors, owned, and its status codes as exceptions.
#pragma once

#include <cudnn.h>

#include "core/cuda/runtime/handle.h"
#include "core/device/device.h"
#include "core/dtype.h"

namespace tessera::cuda {

using TensorDescriptor = UniqueHandle<cudnnTensorDescriptor_t, cudnnDestroyTensorDescriptor>;
using FilterDescriptor = UniqueHandle<cudnnFilterDescriptor_t, cudnnDestroyFilterDescriptor>;
using ConvolutionDescriptor = UniqueHandle<cudnnConvolutionDescriptor_t, cudnnDestroyConvolutionDescriptor>;
using ActivationDescriptor = UniqueHandle<cudnnActivationDescriptor_t, cudnnDestroyActivationDescriptor>;

// The device's, on its stream; made on first use, never destroyed. Makes `device` this thread's current one.
cudnnHandle_t dnn_handle(Device device);

// OutOfMemoryError where the library could not allocate, DeviceError for everything else: "conv2d: cuDNN: ...".
void check(cudnnStatus_t status, const char* operation);

// Whether the library says that it has no such kernel, rather than that something went wrong. Forgets the error that the call may
// have left.
bool is_refusal(cudnnStatus_t status);

// The same for a call that only asks, and runs nothing: for dtypes that the library cannot combine it may answer with an
// internal error.
bool is_unoffered(cudnnStatus_t status);

cudnnDataType_t dnn_type(DType dtype);

// Images [n, h, w, channels] and filters [out, kh, kw, in], contiguous.
TensorDescriptor describe_images(DType dtype, std::int64_t n, std::int64_t h, std::int64_t w, std::int64_t channels);
FilterDescriptor describe_filters(DType dtype, std::int64_t out, std::int64_t kh, std::int64_t kw, std::int64_t in);

}  // namespace tessera::cuda
