// The ranks of a test program that mpirun has started.
#pragma once

#include "core/comm/mpi_communicator.h"
#include "core/comm/own_gpu.h"

namespace tessera {

inline Communicator& ranks() {
  static const std::unique_ptr<Communicator> all = mpi_communicator();
  return *all;
}

// Before a test asks CUDA for GPUs.
[[maybe_unused]] inline const bool kHasOwnGpu = (take_own_gpu(), true);

}  // namespace tessera
