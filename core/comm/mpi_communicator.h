// Ranks that MPI has started, on one machine or several. Its library, tessera_mpi, is linked by programs alone; other libraries
// know only the interface.
#pragma once

#include <memory>

#include "core/comm/gpu_sums.h"

namespace tessera {

// Initialises MPI, which a process can do once; the destructor finalises it, and waits for the other ranks to get there. A rank
// that will not get there calls fail() or, as rank 0, end_all() instead. Ranks that wait for others sleep. Sums are taken by
// exchanging pieces, adding them in the order of ranks and gathering the results: unlike MPI_Allreduce, whose order depends on
// the size and the library. Sums of tensors on GPUs are those of `make`, which is asked at the first of them; without it, or
// where it gives none, each rank copies its values to the host and the sums back.
std::unique_ptr<Communicator> mpi_communicator(MakeGpuSums make = {});

}  // namespace tessera
