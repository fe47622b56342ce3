// The driver's copy inside a GPU's memory: the yardstick of ops whose floor is memory traffic.
#pragma once

#include "core/tensor.h"

namespace tessera::bench {

// Queues y = x, byte by byte; both contiguous, of one size and on one GPU.
void cuda_copy(const Tensor& x, const Tensor& y);

}  // namespace tessera::bench
