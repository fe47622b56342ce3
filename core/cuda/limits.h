// What a GPU holds, as plain numbers: planners that need no GPU take one.
#pragma once

#include <cstddef>

namespace tessera::cuda {

struct Limits {
  int processors = 0;  // streaming multiprocessors
  int capability = 0;  // 10 * major + minor: 90
  int threads_per_processor = 0;
  std::size_t shared_per_block = 0;  // what a kernel may ask for, beyond 48 KiB by an attribute; bytes
  std::size_t shared_per_processor = 0;
  std::size_t l2 = 0;
};

}  // namespace tessera::cuda
