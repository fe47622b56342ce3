// For timings of work whose operands come from memory.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <memory>

#include "core/tensor.h"

namespace tessera::cpu {

// Weights of at least so many bytes are timed from memory: a network that has such is usually larger than the caches.
inline constexpr std::size_t kLeastSweptBytes = std::size_t{1} << 20;

// Every call fills the caches of all threads with other bytes, where `wanted`. A timing that repeats one product finds its
// weight in a cache. There kernels rank in another order than in a network, whose weights are read in turn.
//
// The other bytes are bytes_beyond_caches() (core/cpu/machine_memory.h), 16 to 256 MiB. The first call allocates them: where no
// clock runs, they take no memory. Where there is no memory for them, calls do nothing.
class CacheSweep {
 public:
  explicit CacheSweep(bool wanted) : wanted_(wanted) {}
  void operator()();

 private:
  bool wanted_;
  std::size_t count_ = 0;
  std::unique_ptr<float[]> other_;
};

// Products of matrices with so many bytes in all, factors and result, are timed from memory: when a network trains, the tensors
// of other layers lie between two calls.
inline constexpr std::size_t kLeastFlushedBytes = std::size_t{4} << 20;

// Takes what these tensors hold out of all caches, where they have at least kLeastFlushedBytes together. Unlike a sweep it needs
// no memory, and does not reach copies that a kernel keeps.
void flush_caches_of(std::initializer_list<const Tensor*> tensors);

// How often flush_caches_of() emptied caches on this thread: shows what was timed from memory.
std::size_t cache_flushes();

}  // namespace tessera::cpu
