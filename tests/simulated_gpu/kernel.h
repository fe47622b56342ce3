// In front of every source of kernels that the host's compiler translates for the simulated GPU.
#pragma once

#include <cuda_runtime.h>

#include <bit>
#include <cmath>
#include <type_traits>

#include "tests/simulated_gpu/block.h"

#undef __shared__
#define __shared__ static  // one block runs at a time
#undef __launch_bounds__
#define __launch_bounds__(...)
#define threadIdx (::tessera::simulated_gpu::place.thread)
#define blockIdx (::tessera::simulated_gpu::place.block)
#define blockDim (::tessera::simulated_gpu::current.threads)
#define gridDim (::tessera::simulated_gpu::current.blocks)

using std::isfinite;

inline void __syncthreads() { ::tessera::simulated_gpu::barrier(); }

inline void __syncwarp() {
  const unsigned nothing = 0;
  ::tessera::simulated_gpu::exchange(&nothing, sizeof(nothing));
}

inline unsigned __shfl_xor_sync(unsigned lanes, unsigned value, int mask) {
  if (lanes != 0xffffffffU) ::tessera::simulated_gpu::fail("a shuffle of a part of a warp");
  const auto* const all = static_cast<const unsigned*>(::tessera::simulated_gpu::exchange(&value, sizeof(value)));
  return all[::tessera::simulated_gpu::lane() ^ mask];
}

template <class A, class B>
std::common_type_t<A, B> min(A a, B b) {
  return b < a ? b : a;
}
template <class A, class B>
std::common_type_t<A, B> max(A a, B b) {
  return a < b ? b : a;
}

