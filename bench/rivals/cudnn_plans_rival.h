// Execution plans of cuDNN's graph interface for one convolution.
#pragma once

#include <cudnn.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "bench/dense_shapes.h"
#include "core/cuda/runtime/handle.h"
#include "core/dtype.h"

namespace tessera::bench {

void check(cudnnStatus_t status, const char* call);  // throws DeviceError

using BackendHandle = cuda::UniqueHandle<cudnnBackendDescriptor_t, cudnnBackendDestroyDescriptor>;

// One of cuDNN's descriptors, filled attribute by attribute.
class Backend {
 public:
  Backend() = default;
  explicit Backend(cudnnBackendDescriptorType_t type);

  template <class T>
  Backend& set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, const std::vector<T>& values) {
    check(cudnnBackendSetAttribute(get(), name, type, static_cast<std::int64_t>(values.size()), values.data()),
          "cuDNN attribute");
    return *this;
  }
  Backend& set(cudnnBackendAttributeName_t name, const Backend& other);
  bool finalize();  // false: cuDNN cannot do this
  cudnnBackendDescriptor_t get() const noexcept { return handle_.get(); }

 private:
  BackendHandle handle_;
};

enum class ImageLayout { channels_last, channels_first };

// The tensors' ids in a pass.
constexpr std::int64_t kImageId = 1, kFilterId = 2, kResultId = 3;

struct ConvPlan {
  std::string name;
  Backend config;  // the plan reads it
  Backend plan;
  std::int64_t workspace = 0;  // bytes
};

// Without engines that round f32 operands, unless `tf32`.
std::vector<ConvPlan> conv_plans(cudnnHandle_t handle, ConvPass pass, const ConvShape& shape, DType dtype, ImageLayout layout,
                                 bool tf32);

// Pointers of x, weight and y in this order.
Backend variant_pack(const std::array<void*, 3>& tensors, void* workspace);

}  // namespace tessera::bench
