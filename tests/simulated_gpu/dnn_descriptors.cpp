// The cuDNN functions that tessera calls to make and fill handles and descriptors.
#include <cstddef>

#include "tests/simulated_gpu/dnn.h"
#include "tests/simulated_gpu/handles.h"

using tessera::simulated_gpu::destroy;
using tessera::simulated_gpu::make;

extern "C" {

cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) { return make<cudnnStatus_t>(handle); }
cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  handle->stream = stream;
  return CUDNN_STATUS_SUCCESS;
}
std::size_t cudnnGetVersion() { return CUDNN_VERSION; }
const char* cudnnGetErrorString(cudnnStatus_t) { return "status of the simulated cuDNN"; }

cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t* made) { return make<cudnnStatus_t>(made); }
cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t desc) { return destroy<cudnnStatus_t>(desc); }
cudnnStatus_t cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t desc, cudnnTensorFormat_t format, cudnnDataType_t type, int n,
                                         int c, int h, int w) {
  *desc = {format, type, n, c, h, w};
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnCreateFilterDescriptor(cudnnFilterDescriptor_t* made) { return make<cudnnStatus_t>(made); }
cudnnStatus_t cudnnDestroyFilterDescriptor(cudnnFilterDescriptor_t desc) { return destroy<cudnnStatus_t>(desc); }
cudnnStatus_t cudnnSetFilter4dDescriptor(cudnnFilterDescriptor_t desc, cudnnDataType_t type, cudnnTensorFormat_t format, int out,
                                         int in, int h, int w) {
  *desc = {type, format, out, in, h, w};
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnCreateConvolutionDescriptor(cudnnConvolutionDescriptor_t* made) { return make<cudnnStatus_t>(made); }
cudnnStatus_t cudnnDestroyConvolutionDescriptor(cudnnConvolutionDescriptor_t desc) { return destroy<cudnnStatus_t>(desc); }
cudnnStatus_t cudnnSetConvolution2dDescriptor(cudnnConvolutionDescriptor_t desc, int pad_h, int pad_w, int stride_h, int stride_w,
                                              int dilation_h, int dilation_w, cudnnConvolutionMode_t mode,
                                              cudnnDataType_t compute) {
  if (mode != CUDNN_CROSS_CORRELATION || compute != CUDNN_DATA_FLOAT) return CUDNN_STATUS_BAD_PARAM;
  *desc = {pad_h, pad_w, stride_h, stride_w, dilation_h, dilation_w};
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetConvolutionGroupCount(cudnnConvolutionDescriptor_t desc, int groups) {
  desc->groups = groups;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t desc, cudnnMathType_t math) {
  desc->math = math;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnCreateActivationDescriptor(cudnnActivationDescriptor_t* made) { return make<cudnnStatus_t>(made); }
cudnnStatus_t cudnnDestroyActivationDescriptor(cudnnActivationDescriptor_t desc) { return destroy<cudnnStatus_t>(desc); }
cudnnStatus_t cudnnSetActivationDescriptor(cudnnActivationDescriptor_t desc, cudnnActivationMode_t mode, cudnnNanPropagation_t,
                                           double) {
  desc->mode = mode;
  return CUDNN_STATUS_SUCCESS;
}

// The graph interface. It has no engine for any operation here.
cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t* made) {
  *made = new cudnnBackendDescriptorType_t(type);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t desc) {
  delete static_cast<cudnnBackendDescriptorType_t*>(desc);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t, cudnnBackendAttributeName_t, cudnnBackendAttributeType_t,
                                       int64_t, const void*) {
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t desc) {
  const auto type = *static_cast<cudnnBackendDescriptorType_t*>(desc);
  const bool part = type == CUDNN_BACKEND_TENSOR_DESCRIPTOR || type == CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR;
  return part ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_NOT_SUPPORTED;
}
cudnnStatus_t cudnnBackendGetAttribute(const cudnnBackendDescriptor_t, cudnnBackendAttributeName_t, cudnnBackendAttributeType_t,
                                       int64_t, int64_t*, void*) {
  return CUDNN_STATUS_NOT_SUPPORTED;
}
cudnnStatus_t cudnnBackendExecute(cudnnHandle_t, cudnnBackendDescriptor_t, cudnnBackendDescriptor_t) {
  return CUDNN_STATUS_NOT_SUPPORTED;
}

}  // extern "C"
