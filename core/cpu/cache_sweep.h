// Timings as they are where operands come from memory.
#pragma once

#include <cstddef>
#include <vector>

namespace tessera::cpu {

// Weights of at least so many bytes are timed from memory: a network that has such is larger than the caches.
inline constexpr std::size_t kLeastSweptBytes = std::size_t{1} << 20;

// Every call fills the caches of all threads with other bytes. A clock that repeats one product finds its weight in a cache,
// where kernels rank in another order than where a whole network's weights are read in turn.
class CacheSweep {
 public:
  CacheSweep();
  void operator()() const;

 private:
  std::vector<float> other_;  // twice the last cache that a core reaches, at most 256 MiB
};

}  // namespace tessera::cpu
