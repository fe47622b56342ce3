#include "core/cuda/libraries/solver_handle.h"

#include "core/cuda/runtime/error.h"
#include "core/cuda/runtime/per_device.h"
#include "core/support/error.h"

namespace tessera::cuda {
namespace {

// cuSOLVER has no function that gives these texts.
const char* text_of(cusolverStatus_t status) {
  switch (status) {
    case CUSOLVER_STATUS_NOT_INITIALIZED: return "the library is not initialised";
    case CUSOLVER_STATUS_ALLOC_FAILED: return "an allocation failed";
    case CUSOLVER_STATUS_INVALID_VALUE: return "an argument is not allowed";
    case CUSOLVER_STATUS_ARCH_MISMATCH: return "the GPU lacks a feature";
    case CUSOLVER_STATUS_EXECUTION_FAILED: return "a kernel failed";
    case CUSOLVER_STATUS_INTERNAL_ERROR: return "an internal operation failed";
    case CUSOLVER_STATUS_NOT_SUPPORTED: return "the combination of arguments is not supported";
    default: return "unnamed status";
  }
}

}  // namespace

cusolverDnHandle_t solver_handle(Device device) {
  struct Solver {};
  return per_device<Solver>(device, [device] {
    cusolverDnHandle_t handle = nullptr;
    check(cusolverDnCreate(&handle), "cuSOLVER handle");
    check(cusolverDnSetStream(handle, stream_of(device)), "cuSOLVER handle");
    check(cusolverDnSetDeterministicMode(handle, CUSOLVER_DETERMINISTIC_RESULTS), "cuSOLVER handle");
    return handle;
  });
}

void check(cusolverStatus_t status, const char* operation) {
  if (status == CUSOLVER_STATUS_SUCCESS) return;
  forget_error();
  const std::string text = str(operation, ": cuSOLVER: status ", static_cast<int>(status), ": ", text_of(status));
  if (status == CUSOLVER_STATUS_ALLOC_FAILED) throw OutOfMemoryError(text);
  throw DeviceError(text);
}

SolverParameters make_solver_parameters() {
  cusolverDnParams_t made = nullptr;
  check(cusolverDnCreateParams(&made), "cuSOLVER parameters");
  return SolverParameters(made);
}

JacobiParameters make_jacobi_parameters() {
  gesvdjInfo_t made = nullptr;
  check(cusolverDnCreateGesvdjInfo(&made), "cuSOLVER parameters");
  return JacobiParameters(made);
}

}  // namespace tessera::cuda
