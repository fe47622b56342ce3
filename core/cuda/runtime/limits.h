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

// What every kernel's block may have, static and dynamic together, without an attribute; bytes.
constexpr std::size_t kSharedUnasked = 48 * 1024;

// The dynamic shared memory that a kernel with `fixed` bytes of static one must be allowed before a launch with `dynamic`; 0: no
// need to ask. It is all that a block may have, never less: a recorded graph may hold the kernel with more than this launch asks
// for. More than the GPU has stays more, so that the launch fails.
constexpr std::size_t shared_to_allow(std::size_t dynamic, std::size_t fixed, const Limits& limits) {
  if (dynamic + fixed <= kSharedUnasked) return 0;
  return dynamic + fixed <= limits.shared_per_block ? limits.shared_per_block - fixed : dynamic;
}

}  // namespace tessera::cuda
