#include "core/cuda/error.h"

#include "core/error.h"

namespace tessera::cuda {

void check(cudaError_t status, const char* operation) {
  if (status == cudaSuccess) return;
  static_cast<void>(cudaGetLastError());  // it is told here; the next launch is not to find it again
  const std::string text = str(operation, ": ", cudaGetErrorName(status), ": ", cudaGetErrorString(status));
  if (status == cudaErrorMemoryAllocation) throw OutOfMemoryError(text);
  throw DeviceError(text);
}

}  // namespace tessera::cuda
