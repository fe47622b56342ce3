// The one switch between backends: an ordinary call of cpu::fn or cuda::fn, resolved at compile time to declarations that
// stand in the op's header. A build without CUDA refuses other devices by name. The timer lives to the end of the call.
#pragma once

#include "core/device.h"
#include "core/profile.h"

#if defined(TESSERA_HAS_CUDA) && TESSERA_HAS_CUDA
#define TESSERA_DISPATCH(device, fn, ...) \
  (static_cast<void>(::tessera::KernelTimer()), (device).is_cuda() ? cuda::fn(__VA_ARGS__) : cpu::fn(__VA_ARGS__))
#else
#define TESSERA_DISPATCH(device, fn, ...) \
  (::tessera::require_cpu(device, #fn), static_cast<void>(::tessera::KernelTimer()), cpu::fn(__VA_ARGS__))
#endif

// Functions that both the host compiler and nvcc build.
#if defined(__CUDACC__)
#define TESSERA_HD __host__ __device__
#else
#define TESSERA_HD
#endif
