// What the simulated GPU says of itself: the limits of an H100 but for few processors, so that grids stay small and kernels walk
// in strides of them.
#pragma once

#include <cstddef>

namespace tessera::simulated_gpu {

struct Chip {
  int processors = 4;
  int threads_per_processor = 2048;
  int capability_major = 9, capability_minor = 0;
  std::size_t shared_per_block = 227 << 10;  // with cudaFuncSetAttribute
  std::size_t shared_per_processor = 228 << 10;
  std::size_t l2 = 50 << 20;
  std::size_t memory = std::size_t{4} << 30;
};
inline constexpr Chip kChip;

}  // namespace tessera::simulated_gpu
