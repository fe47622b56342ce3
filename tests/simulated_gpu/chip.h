// What the simulated GPU says of itself: the limits of an H100 but for few processors, so that grids stay small and kernels walk
// in strides of them.
#pragma once

#include <cstddef>

#include "tests/support/gpu_limits.h"

namespace tessera::simulated_gpu {

struct Chip : cuda::Limits {
  std::size_t memory = std::size_t{4} << 30;
};

constexpr Chip chip_of_few_processors() {
  Chip chip{kH100};
  chip.processors = 4;
  return chip;
}
inline constexpr Chip kChip = chip_of_few_processors();

}  // namespace tessera::simulated_gpu
