#include "core/cuda/runtime/error.h"

#include "core/support/error.h"

namespace tessera::cuda {

void check(cudaError_t status, const char* operation) {
  if (status == cudaSuccess) return;
  forget_error();
  const std::string text = str(operation, ": ", cudaGetErrorName(status), ": ", cudaGetErrorString(status));
  if (status == cudaErrorMemoryAllocation) throw OutOfMemoryError(text);
  throw DeviceError(text);
}

void forget_error() noexcept { static_cast<void>(cudaGetLastError()); }

}  // namespace tessera::cuda
