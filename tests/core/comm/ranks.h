// The ranks of a test program that mpirun has started.
#pragma once

#include "core/comm/mpi_communicator.h"

namespace tessera {

inline Communicator& ranks() {
  static const std::unique_ptr<Communicator> all = mpi_communicator();
  return *all;
}

}  // namespace tessera
