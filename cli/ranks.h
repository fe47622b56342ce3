// The processes that mpirun has started as one program, of which this is one. A program that was started by itself is alone, and
// does not initialise MPI.
#pragma once

#include <string>

#include "core/comm/communicator.h"

namespace tessera::cli {

// Joins the others where mpirun has started several. Throws ConfigError in a build without MPI.
void join_ranks();
// Those that were joined; before that and without others, one_process().
Communicator& ranks();

// Before a rank above 0 tells of its failure: rank 0 has a moment to tell of its own, which may be the same one on every rank,
// and to end all. "" on rank 0, "rank 1: " on others.
std::string yield_to_rank_0();

// What main returns. The others wait for a rank that has failed, so that such an exit code ends them all and does not return.
int leave_ranks(int exit_code);

}  // namespace tessera::cli
