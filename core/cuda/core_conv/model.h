// How long a core convolution takes, by counting: waves of blocks, multiplications, shared memory, the L2 cache, latencies.
#pragma once

#include <cstdint>

#include "core/cuda/runtime/limits.h"

namespace tessera::cuda::core_conv {

// One block of a kernel, all its stages alike. Counts of a stage are of the whole block where they do not say "thread".
struct BlockWork {
  int threads, registers;
  std::int64_t shared;  // bytes
  double stages;
  double products;  // of a thread
  double reads;  // of 16 bytes of shared memory, of a thread
  double dependent_reads;  // of those, rounds that wait for one another
  double copies;  // of a thread
  double bytes;  // copied
  double tail;  // cycles behind the last stage
};

struct KernelWork {
  BlockWork block;
  double blocks;
  double bytes;  // that the kernel must touch at least once: operands and result
};

double seconds_of(const KernelWork& work, const Limits& limits);

// The kernel that adds up partial sums.
double seconds_of_add_splits(double numel, double splits, const Limits& limits);

// A product of [m, k] and [k, n] as an implicit matrix product of a library: its fastest tile, with k in one part or several.
double seconds_of_library(double m, double n, double k, double bytes, const Limits& limits);

}  // namespace tessera::cuda::core_conv
