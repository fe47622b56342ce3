// The one switch between backends: an ordinary call of cpu::fn or cuda::fn, resolved at compile time to declarations that
// stand in the op's header. A build without CUDA refuses other devices by name. The timer lives to the end of the call.
#pragma once

#include "core/device/backends.h"
#include "core/device/device.h"
#include "core/support/profile.h"

// The switch alone, for what is no kernel.
#if TESSERA_HAS_CUDA
#define TESSERA_BACKEND(device, fn, ...) ((device).is_cuda() ? cuda::fn(__VA_ARGS__) : cpu::fn(__VA_ARGS__))
#else
#define TESSERA_BACKEND(device, fn, ...) (::tessera::require_cpu(device, #fn), cpu::fn(__VA_ARGS__))
#endif

#define TESSERA_DISPATCH(device, fn, ...) \
  (static_cast<void>(::tessera::KernelTimer()), TESSERA_BACKEND(device, fn, __VA_ARGS__))
