#include "core/device/device_info.h"

#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>

#include <cmath>

#include "core/cuda/runtime/built_for.h"
#include "core/cuda/runtime/chip.h"
#include "core/cuda/runtime/context.h"
#include "core/cuda/runtime/error.h"
#include "core/support/error.h"

namespace tessera::cuda {
namespace {

std::string cuda_version(int version) { return str(version / 1000, '.', version % 1000 / 10); }

std::string library_versions() {
  int runtime = 0;
  check(cudaRuntimeGetVersion(&runtime), "cuda runtime");
  const std::size_t dnn = cudnnGetVersion();
  const std::size_t blas = cublasLtGetVersion();
  return str("CUDA ", cuda_version(runtime), ", cuDNN ", dnn / 10000, '.', dnn / 100 % 100, '.', dnn % 100, ", cuBLASLt ",
             blas / 10000, '.', blas / 100 % 100, '.', blas % 100);
}

std::string dotted(int capability) { return str(capability / 10, '.', capability % 10); }

cudaError_t count(int* devices) {
  const cudaError_t status = cudaGetDeviceCount(devices);
  if (status != cudaSuccess) forget_error();
  return status;
}

}  // namespace

int count_devices() noexcept {
  int devices = 0;
  return count(&devices) == cudaSuccess ? devices : 0;
}

std::string why_no_device() {
  int devices = 0;
  switch (const cudaError_t status = count(&devices)) {
    case cudaSuccess: return devices > 0 ? "" : "no GPU is visible to this process";
    case cudaErrorInsufficientDriver: {
      int driver = 0;
      int runtime = 0;
      static_cast<void>(cudaDriverGetVersion(&driver));
      static_cast<void>(cudaRuntimeGetVersion(&runtime));
      if (driver == 0) return "no CUDA driver is installed";
      return str("the driver supports CUDA ", cuda_version(driver), ", this build needs ", cuda_version(runtime));
    }
    case cudaErrorNoDevice: return "no GPU is visible to this process";
    default: return str(cudaGetErrorName(status), ": ", cudaGetErrorString(status));
  }
}

std::string why_not(Device device) {
  const int capability = capability_of(device.index());
  if (capability >= least_capability()) return "";
  return str("it has compute capability ", dotted(capability), ", this build has kernels for ", dotted(least_capability()),
             " and newer");
}

DeviceInfo info_of(Device device) {
  const Limits& limits = limits_of(device);
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, device.index()), "device_info");
  int driver = 0;
  check(cudaDriverGetVersion(&driver), "device_info");
  DeviceInfo info;
  info.name = static_cast<const char*>(properties.name);
  info.capability = dotted(limits.capability);
  info.driver = cuda_version(driver);
  info.libraries = library_versions();
  info.memory = properties.totalGlobalMem;
  info.processors = limits.processors;
  return info;
}

// The name includes the memory's bandwidth, because H100 and H200 differ in their memory only.
std::string chip_name(Device device) {
  const Limits& limits = limits_of(device);
  return str("sm", limits.capability, 'x', limits.processors, 'x', std::lround(chip_of(limits).memory * 1e-9));
}

}  // namespace tessera::cuda
