// How long a core convolution takes, by counting: waves of blocks, stages of copies and of multiplications, latencies.
#pragma once

#include <cstdint>

#include "core/conv2d_geometry.h"
#include "core/cuda/runtime/limits.h"

namespace tessera::cuda::core_conv {

// One block of a kernel, all its stages alike; where there are splits, blocks differ in their number. Counts of a stage are of
// the whole block where they do not say "thread".
struct BlockWork {
  int threads, registers;
  std::int64_t shared;  // bytes
  double stages;  // on average
  double most_stages;
  double products;  // of a thread
  double reads;  // of 16 bytes of shared memory, of a thread
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

// Partial sums: the kernel that adds them up, and their way to memory and back.
double seconds_of_add_splits(double numel, double splits, const Limits& limits);

// Elements of the operands and of the result.
double compulsory_elements(const Conv2dGeometry& geometry);

// The product of [m, k] and [k, n] by which a library computes a pass of a convolution.
struct LibraryProduct {
  double m, n, k;
  double bytes;  // that it must touch at least once
  double most_parts;  // that k is cut into
  double element_bytes;
  bool tensor_cores;
};

// cuDNN's times of TDC's cores grow in proportion to k, so it does not split k there. Sums over pixels it has to split.
LibraryProduct library_product(Conv2dPass pass, const Conv2dGeometry& geometry, double element_bytes, bool tensor_cores);

// With the library's fastest tile and number of parts.
double seconds_of_library(const LibraryProduct& product, const Limits& limits);

}  // namespace tessera::cuda::core_conv
