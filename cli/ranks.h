// The processes that mpirun has started as one program. This is one of them. A program that was started by itself is alone, and
// does not initialise MPI.
#pragma once

#include <string_view>

#include "core/comm/communicator.h"
#include "train/run/rank_log.h"

namespace tessera::cli {

// Joins the others where mpirun has started several; from then on all end when one of them does not answer any more. Throws
// ConfigError in a build without MPI, and where srun has started several.
void join_ranks();
// Those that were joined; before that and without others, one_process().
Communicator& ranks();

// The log of this process, if it is a rank above 0. Its warnings and its failure go there too.
RankLog& rank_log();

// Before this process tells of its failure. Rank 0 alone does: it tells of its own, which may be the same one on every rank, or
// of what another has failed of, and ends all. On others this does not return.
void leave_it_to_rank_0(int exit_code, std::string_view why);

// What main returns. The others wait for a rank that has failed, so that such an exit code ends them all and does not return.
int leave_ranks(int exit_code);

}  // namespace tessera::cli
