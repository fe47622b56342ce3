// What a GPU holds, as plain numbers: planners that need no GPU take one.
#pragma once

#include <cstddef>

namespace tessera::cuda {

// As the driver's attributes tell it; 0: the driver does not.
struct Limits {
  int processors = 0;  // streaming multiprocessors
  int capability = 0;  // 10 * major + minor: 90
  int threads_per_processor = 0;
  std::size_t shared_per_block = 0;  // what a kernel may ask for, beyond 48 KiB by an attribute; bytes
  std::size_t shared_per_processor = 0;
  std::size_t l2 = 0;
  int clock = 0;  // kHz, boost
  int memory_clock = 0;  // kHz
  int memory_bits = 0;  // of the memory's bus
};

}  // namespace tessera::cuda
